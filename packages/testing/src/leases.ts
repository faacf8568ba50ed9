/**
 * The leases of the workflows in one database. Tests use long leases, so that no busy worker loses its lease. So a test
 * must end the leases of dead workers itself.
 */
export interface Leases {
  /**
   * Ends the leases that were taken or renewed before `at` (milliseconds since 1970, default: now). Makes their
   * workflows due at once, and also the workflows without a lease. Call it only when the workers of these leases are
   * dead or frozen: a running worker would continue while another worker takes over its workflow. Resolves with the
   * highest fence of all workflows.
   */
  expire(at?: number): Promise<bigint>;
  /** Returns the fence of a workflow's latest claim. */
  fenceOf(workflowId: string): Promise<bigint>;
}

type Query = (text: string, values: readonly unknown[]) => Promise<readonly { fence: string }[]>;

export function openLeases(query: Query, leaseSeconds: number): Leases {
  const fence = async (text: string, values: readonly unknown[]): Promise<bigint> =>
    BigInt((await query(text, values))[0]?.fence ?? 0);
  return {
    expire: (at = Date.now()) => fence(expireSql, [at / 1_000, leaseSeconds]),
    fenceOf: (workflowId) => fence('SELECT fence::text AS fence FROM workflow WHERE id = $1::uuid', [workflowId]),
  };
}

// `dispatch_after` is set too, because the relay ignores a workflow before this time.
const expireSql = `
  WITH expired AS (
    UPDATE workflow SET dispatch_after = least(dispatch_after, clock_timestamp()),
      lease_until = CASE WHEN lease_until IS NOT NULL THEN least(lease_until, clock_timestamp() - interval '1 second') END
    WHERE status IN ('queued', 'running')
      AND (lease_until IS NULL OR lease_until <= to_timestamp($1::float8) + make_interval(secs => $2::float8))
  )
  SELECT coalesce(max(fence), 0)::text AS fence FROM workflow`;
