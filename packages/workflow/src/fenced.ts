import type { Sql } from '@drydock/service/database/sql';
import { fenceRefused } from './metrics';
import { LeaseLost } from './step-error';

/** A claim by its names: what every write of a worker must show. */
export interface Hold {
  id: string;
  kind: string;
  fence: string;
}

/** The condition that makes a frozen worker harmless: $1 is the workflow, $2 the fence of its latest claim. */
export const heldByUs = `id = $1::uuid AND fence = $2::bigint AND status = 'running'`;

/** Runs a statement that returns a row only while the hold is ours. Throws {@link LeaseLost} when it is not: whoever gets that stops at once. */
export async function writeFenced(sql: Sql, hold: Hold, text: string, values: readonly unknown[] = []): Promise<void> {
  const rows = await sql.query(text, [hold.id, hold.fence, ...values]);
  if (rows.length > 0) return;
  fenceRefused(hold.kind);
  throw new LeaseLost(hold.id);
}
