import { ComputeError } from '../compute-provider';
import { createRateBudget } from './rate-budget';

/** Returns the headers of a 429 with no calls left. */
const headersOf = (limit: string, reset: string): Record<string, string> => ({
  'ratelimit-limit': limit,
  'ratelimit-remaining': '0',
  'ratelimit-reset': reset,
  date: new Date(0).toUTCString(),
});

it.each([
  ['counts the seconds from now on', '10', '1'],
  ['counts in milliseconds', '3600', String(3_600_000)],
  ['means a day in the far future', '3600', String(2 ** 53)],
  ['has next to no limit', '0.001', '3600'],
])(
  'calls a provider again within 80 seconds whose header %s, and reports no longer wait',
  async (_what, limit, reset) => {
    let nowMs = 0;
    const budget = createRateBudget(
      () => nowMs,
      () => 1,
    );
    budget.note({ status: 429, headers: headersOf(limit, reset) });
    await budget.admit();
    const refusal: unknown = await budget.admit().catch((error: unknown) => error);
    if (!(refusal instanceof ComputeError)) throw new Error('admitted at once');
    expect(refusal.reason).toBe('rate_limited');
    expect(refusal.retryAfterSeconds).toBeLessThanOrEqual(80);
    nowMs = 80_000;
    await budget.admit();
  },
);
