import type { Sql } from '@drydock/service/database/sql';

/** Reconciliations of ranges that are no longer configured would fail for ever. */
export const removeOtherSchedules = (sql: Sql, names: readonly string[]): Promise<unknown> =>
  sql.query(
    `DELETE FROM workflow_schedule WHERE kind = 'reconcile_servers' AND NOT (name = ANY(ARRAY(SELECT jsonb_array_elements_text($1::jsonb))))`,
    [JSON.stringify(names)],
  );
