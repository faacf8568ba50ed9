import type { EventType } from '@drydock/contracts/keys/events';
import type { Caller } from '@drydock/service/access';
import { audit } from '@drydock/service/effects';
import type { Pager } from '@drydock/service/http';
import type { AgencyDatabase, Tx } from './database.store';

/** The parts that a handler is given. */
export interface HandlerContext {
  database: AgencyDatabase;
  pager: Pager;
}

/** The path of a board, or of a card on it. */
export const boardPath = (boardId: string): string => `/v1/agency/boards/${boardId}`;
export const cardPath = (boardId: string, cardId: string): string => `${boardPath(boardId)}/cards/${cardId}`;

/** One entry of the audit log, in the transaction of the change. `action`: resource and verb. */
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
