import type { Tx } from '../database.store';
import { databaseResourceKey } from '../databases/database-names';
import type { UnfinishedWorkflow } from './unfinished.types';

const unfinishedStatuses = ['queued', 'running', 'needs_attention'];

/** Who holds the database; there is one at most, by a unique index. */
export async function findUnfinished(tx: Tx, databaseId: string): Promise<UnfinishedWorkflow | null> {
  const row = await tx.workflow.findFirst({
    where: { resourceKey: databaseResourceKey(databaseId), status: { in: unfinishedStatuses } },
    select: { id: true, kind: true, status: true },
  });
  if (row === null) return null;
  const { id, kind, status } = row;
  return { id, kind, status: status === 'needs_attention' || status === 'running' ? status : 'queued' };
}
