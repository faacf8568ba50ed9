import type { AuditEntry } from '@drydock/contracts/keys/audit-log';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access/internal-token';
import { uuidv7 } from 'uuidv7';
import type { Reader, Tx } from '../database.store';

export interface AuditRow {
  id: string;
  orgId: string;
  actorKeyId: string | null;
  action: string;
  target: string;
  workflowId: string | null;
  at: Date;
}

/** Keys' own entry, in the transaction of what it tells of. `orgId` is where it happened, which may be below the actor's own. */
export async function recordAudit(
  tx: Tx,
  actor: { keyId: string | null; mode: Mode },
  entry: { orgId: string; action: string; target: string; at: Date },
): Promise<void> {
  const { keyId, mode } = actor;
  await tx.auditLogEntry.create({ data: { id: uuidv7(), service: 'keys', mode, actorKeyId: keyId, workflowId: null, ...entry } });
}

/** Takes a delivery; entries that are already there stay as they are. */
export async function storeDelivery(tx: Tx, service: string, entries: readonly (AuditEntry & { mode: Mode })[]): Promise<void> {
  await tx.auditLogEntry.createMany({
    data: entries.map((entry) => ({
      id: entry.id,
      service,
      orgId: entry.org_id,
      mode: entry.mode,
      actorKeyId: entry.actor_key_id,
      action: entry.action,
      target: entry.target,
      workflowId: entry.workflow_id,
      at: new Date(entry.at),
    })),
    skipDuplicates: true,
  });
}

export const listAudit = (
  tx: Reader,
  { orgId, mode }: Pick<Caller, 'orgId' | 'mode'>,
  page: { after: string | null; take: number },
): Promise<AuditRow[]> =>
  tx.auditLogEntry.findMany({
    where: { orgId, mode, ...(page.after === null ? {} : { id: { lt: page.after } }) },
    orderBy: { id: 'desc' },
    take: page.take,
  });
