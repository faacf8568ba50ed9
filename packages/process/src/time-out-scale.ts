/**
 * `DRYDOCK_TIMEOUT_SCALE` multiplies the time-outs with which our processes wait for each other: for a connection, a
 * lock, a statement, an answer. A busy machine needs more than production grants, and tests set 10. Leases, pauses and
 * lifetimes are not time-outs and stay as they are.
 */
const variable = 'DRYDOCK_TIMEOUT_SCALE';

/**
 * Scales a time-out of production, in milliseconds. The settings of a process refuse a scale that is not a number of at
 * least 1.
 */
export function scaled(timeoutMs: number): number {
  const scale = Number(process.env[variable] ?? 1);
  return scale >= 1 ? Math.round(timeoutMs * scale) : timeoutMs;
}
