import type { Sql } from '@drydock/service/database/sql';

/** Removes the reconciliations of ranges that are not configured any more: they would fail for ever. */
export const removeOtherSchedules = (sql: Sql, names: readonly string[]): Promise<unknown> =>
  sql.query(
    `DELETE FROM workflow_schedule WHERE kind = 'reconcile_servers' AND NOT (name = ANY(ARRAY(SELECT jsonb_array_elements_text($1::jsonb))))`,
    [JSON.stringify(names)],
  );
