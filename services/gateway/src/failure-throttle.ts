import { performance } from 'node:perf_hooks';

export interface FailureThrottleOptions {
  /** Failed look-ups that one address may cause in a window. */
  failuresMax: number;
  windowMs: number;
  addressesMax?: number;
  nowMs?: () => number;
}

export interface FailureThrottle {
  isThrottled(address: string): boolean;
  note(address: string): void;
}

/**
 * Counts failed look-ups per address in fixed windows, so that guessing keys cannot keep the database busy. Memory is
 * bounded.
 */
export function createFailureThrottle(options: FailureThrottleOptions): FailureThrottle {
  const { failuresMax, windowMs, addressesMax = 10_000, nowMs = () => performance.now() } = options;
  const windows = new Map<string, { startedMs: number; failures: number }>();
  const current = (address: string) => {
    const window = windows.get(address);
    return window !== undefined && nowMs() - window.startedMs < windowMs ? window : undefined;
  };
  return {
    isThrottled: (address) => (current(address)?.failures ?? 0) >= failuresMax,
    note: (address) => {
      const window = current(address);
      if (window !== undefined) {
        window.failures += 1;
        return;
      }
      windows.delete(address);
      if (windows.size >= addressesMax) for (const oldest of windows.keys()) if (windows.delete(oldest)) break;
      windows.set(address, { startedMs: nowMs(), failures: 1 });
    },
  };
}
