/**
 * `DRYDOCK_TIMEOUT_SCALE` multiplies the time-outs between processes: for a connection, a lock, a statement, an answer.
 * A busy machine needs longer time-outs than production, so the scale of tests is 10 by default. Leases, pauses and
 * lifetimes are not scaled.
 */
const variable = 'DRYDOCK_TIMEOUT_SCALE';

/** Scales a time-out in milliseconds. A process's settings refuse a scale below 1. */
export function scaled(timeoutMs: number): number {
  const scale = Number(process.env[variable] ?? 1);
  return scale >= 1 ? Math.round(timeoutMs * scale) : timeoutMs;
}

/**
 * A signal that aborts with a `TimeoutError` after this many milliseconds, like `AbortSignal.timeout`. That one must
 * not be joined with others by `AbortSignal.any`: nothing holds it then, and once it is garbage the joined signal never
 * aborts (nodejs/node#57736). Here the timer holds the signal until its time is over. The timer keeps no process alive.
 */
export function timeLimit(limitMs: number): AbortSignal {
  const limit = new AbortController();
  setTimeout(() => limit.abort(new DOMException(`no end within ${limitMs} ms`, 'TimeoutError')), limitMs).unref();
  return limit.signal;
}
