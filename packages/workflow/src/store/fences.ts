import type { Database } from '@drydock/service/database/sql';

/**
 * Raises the numbers of later claims above all that were ever given out. A database that was put back from a backup counts from where it was, while hosts have seen
 * higher fences since and would refuse its claims, or take one for another of the same number. The milliseconds since 1970 are beyond every earlier number: each
 * start of a worker begins there at the least, and claims are far fewer than 1,000 a second. Raising harms no claim, so anybody may do it at any time.
 */
export const raiseFences = <Tx>(database: Database<Tx>): Promise<unknown> =>
  database.transaction(async (tx) => {
    // One after the other: two that have read the same number would set it twice, the later of them back below claims of between.
    await database.sql(tx).query(`SELECT pg_advisory_xact_lock(hashtextextended('workflow_fence', 0))::text`);
    return database.sql(tx).query(raiseFencesSql);
  });

// Only from far below: a claim that counts up meanwhile must not be counted back.
const raiseFencesSql = `
  SELECT setval('workflow_fence', now.ms) FROM workflow_fence, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) now
  WHERE workflow_fence.last_value < now.ms - 1000`;
