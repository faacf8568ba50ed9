import type { Sql } from '@drydock/database/sql';

/** In one statement, so that none holds many rows for long. */
const batchMax = 1_000;

const purgeSql = `
  DELETE FROM workflow WHERE id IN (
    SELECT id FROM workflow WHERE finished_at < $1::timestamptz AND status IN ('succeeded', 'failed') ORDER BY id LIMIT ${batchMax} FOR UPDATE SKIP LOCKED
  ) RETURNING id`;

/** Removes workflows that finished before then, with their steps. Resolves with how many. */
export async function purgeWorkflows(sql: Sql, before: Date): Promise<number> {
  let purged = 0;
  for (;;) {
    const { length } = await sql.query<{ id: string }>(purgeSql, [before.toISOString()]);
    purged += length;
    if (length < batchMax) return purged;
  }
}

/** For what the clock starts every minute for ever: runs that went well a day ago are of no use to anybody. */
export async function forgetRuns(sql: Sql, kind: string): Promise<void> {
  await sql.query(`DELETE FROM workflow WHERE kind = $1 AND status = 'succeeded' AND finished_at < clock_timestamp() - interval '1 day'`, [
    kind,
  ]);
}
