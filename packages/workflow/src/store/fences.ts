import type { Database } from '@drydock/service/database/sql';

/**
 * Raises the fences of later claims above all earlier ones. A database that was put back from a backup counts from
 * where it was, while hosts have seen higher fences since and would refuse its claims, or take one for another with the
 * same number. The milliseconds since 1970 are higher than every earlier number: each start of a worker begins there at
 * least, and there are far fewer than 1,000 claims a second. Raising does no harm to claims, so it may be done at any
 * time.
 */
export const raiseFences = <Tx>(database: Database<Tx>): Promise<unknown> =>
  database.transaction(async (tx) => {
    // One at a time: two that have read the same number would set it twice, the later one back below claims made in
    // between.
    await database.sql(tx).query(`SELECT pg_advisory_xact_lock(hashtextextended('workflow_fence', 0))::text`);
    return database.sql(tx).query(raiseFencesSql);
  });

// Only from far below, so that a claim that counts up meanwhile is not counted back.
const raiseFencesSql = `
  SELECT setval('workflow_fence', now.ms) FROM workflow_fence,
    (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) now
  WHERE workflow_fence.last_value < now.ms - 1000`;
