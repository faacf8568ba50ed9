import { performance } from 'node:perf_hooks';

/** The longest wait. A customer's program would not wait for longer. */
const secondsMax = 30;

/** Seconds after which a refused call of this holder may come again. */
export type ComeBack = (holder: string) => number;

/**
 * Spreads the returns of refused calls: `perSecond` of one holder come back in each second, the last one after 30. If
 * ten thousand clients all had to wait for a second, all of them would come back and be refused every second. That
 * would cost the gateway as much as answering them. Holders are verified organisations, so nobody can make many. A
 * holder is forgotten within a minute after its last call came back.
 */
export function createComeBack(perSecond: number, nowMs: () => number = () => performance.now()): ComeBack {
  /** For each holder the time when its last refused call comes back. */
  const lastMs = new Map<string, number>();
  let sweepMs = nowMs() + 60_000;
  return (holder) => {
    const now = nowMs();
    if (now >= sweepMs) {
      sweepMs = now + 60_000;
      for (const [old, last] of lastMs) if (last < now) lastMs.delete(old);
    }
    const next = Math.min(Math.max(lastMs.get(holder) ?? 0, now) + 1_000 / perSecond, now + secondsMax * 1_000);
    lastMs.set(holder, next);
    return Math.ceil((next - now) / 1_000);
  };
}
