import type { Sql } from '@drydock/service/database/sql';
import type { UnfinishedWorkflow } from './unfinished.types';

/** Who holds the resource; there is one at most, by a unique index. Null when it is free. */
export async function findUnfinished(sql: Sql, resourceKey: string): Promise<UnfinishedWorkflow | null> {
  const [holder] = await sql.query<UnfinishedWorkflow>(holderSql, [resourceKey]);
  return holder ?? null;
}

const holderSql = `SELECT id, kind, status FROM workflow WHERE resource_key = $1 AND status IN ('queued', 'running', 'needs_attention')`;
