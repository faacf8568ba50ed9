import type { Database } from '@drydock/service/database';

/**
 * Raises the fences of later claims above all earlier ones, to the milliseconds since 1970. A database that was
 * restored from a backup would otherwise repeat fences that agents have seen already. The milliseconds exceed every
 * earlier fence as long as fewer than 1,000 claims are made a second. Existing claims keep their fences, so raising is
 * allowed at any time.
 */
export const raiseFences = <Tx>(database: Database<Tx>): Promise<unknown> =>
  database.transaction(async (tx) => {
    // The lock lets one worker raise the sequence at a time. Otherwise two workers could read the same number, and the
    // second could set the sequence back below the fence of a claim that was made after the first.
    await database.sql(tx).query(`SELECT pg_advisory_xact_lock(hashtextextended('workflow_fence', 0))::text`);
    return database.sql(tx).query(raiseFencesSql);
  });

// The counter is raised only if it is more than a second behind. If it were raised from a smaller distance, a claim at
// the same moment could already have counted past the new value. `setval` would then set the counter back below that
// claim's fence.
const raiseFencesSql = `
  SELECT setval('workflow_fence', now.ms) FROM workflow_fence,
    (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) now
  WHERE workflow_fence.last_value < now.ms - 1000`;
