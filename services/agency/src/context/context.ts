import type { EventType } from '@drydock/contracts/keys/events';
import type { Caller } from '@drydock/service/access';
import { audit } from '@drydock/service/effects';
import type { Pager } from '@drydock/service/http';
import type { AgencyDatabase, Tx } from './database.store';

export interface HandlerContext {
  database: AgencyDatabase;
  pager: Pager;
}

/** The paths under which the audit log names a board and a card. */
export const boardPath = (boardId: string): string => `/v1/agency/boards/${boardId}`;
export const cardPath = (boardId: string, cardId: string): string => `${boardPath(boardId)}/cards/${cardId}`;

/** Writes one entry of the audit log in the transaction of the change. */
export async function noteChange(
  { database }: HandlerContext,
  tx: Tx,
  caller: Caller,
  action: EventType,
  target: string,
): Promise<void> {
  const { orgId, mode, keyId: actorKeyId } = caller;
  await audit(database.sql(tx), { orgId, mode, actorKeyId, action, target, workflowId: null });
}
