import type { ComputeReason } from './compute-reason.types';

const passing: readonly ComputeReason[] = ['locked', 'conflict', 'rate_limited', 'unavailable'];

/** `message` is for the log only, because it may contain text of the provider. */
export class ComputeError extends Error {
  readonly reason: ComputeReason;
  /** Seconds to wait after `rate_limited` and `unavailable`, if they are known; at least 1. */
  readonly retryAfterSeconds: number | null;

  constructor(reason: ComputeReason, message: string, options: ErrorOptions & { retryAfterSeconds?: number } = {}) {
    super(`${reason}: ${message}`, options);
    this.name = 'ComputeError';
    this.reason = reason;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }

  /** Whether the same call may be tried later: nothing was accepted. */
  get mayPass(): boolean {
    return passing.includes(this.reason);
  }
}
