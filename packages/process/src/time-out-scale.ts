/**
 * `DRYDOCK_TIMEOUT_SCALE` multiplies how long our processes wait for each other: for a connection, a lock, a statement, an answer. A busy machine needs more time than
 * production grants, and tests set 10. Leases, pauses and lifetimes are no time-outs and stay as they are.
 */
const variable = 'DRYDOCK_TIMEOUT_SCALE';

/** The time-out of production, in milliseconds, as long as this process is to wait. The settings of a process refuse a scale that is no number of 1 or more. */
export function scaled(timeoutMs: number): number {
  const scale = Number(process.env[variable] ?? 1);
  return scale >= 1 ? Math.round(timeoutMs * scale) : timeoutMs;
}
