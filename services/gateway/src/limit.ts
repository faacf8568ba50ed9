import type { Caller } from '@drydock/service-kit/internal-token';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Quota, QuotaName, QuotaUse } from './quota';
import type { QuotaStore } from './quota-store';

/** Counts a call. Never rejects and never waits long: without Redis each gateway counts by itself. */
export type Limit = (quota: Quota, caller: Caller) => Promise<QuotaUse>;

interface Counter {
  consume(holder: string): Promise<RateLimiterRes>;
}

/** `store` undefined: there is no Redis, each process counts alone. */
export function createLimit(quotas: Readonly<Record<QuotaName, Quota>>, store: QuotaStore | undefined): Limit {
  const counters = {
    read: createCounters(quotas.read, store),
    write: createCounters(quotas.write, store),
    mint: createCounters(quotas.mint, store),
  };
  return async (quota, caller) => {
    const { local, common } = counters[quota.name];
    const holder = quota.holderOf(caller);
    if (store === undefined || common === undefined || !store.isUsable()) return count(local, holder);
    try {
      return await count(common, holder);
    } catch (error) {
      store.reportFailure(error);
      return count(local, holder);
    }
  };
}

function createCounters(quota: Quota, store: QuotaStore | undefined): { local: Counter; common: Counter | undefined } {
  const options = { points: quota.requestsMax, duration: quota.windowSeconds, keyPrefix: `drydock:quota:${quota.name}` };
  const local = new RateLimiterMemory(options);
  if (store === undefined) return { local, common: undefined };
  return { local, common: new RateLimiterRedis({ ...options, storeClient: store.client, rejectIfRedisNotReady: true }) };
}

/** Rejects with whatever kept the counter from counting. */
async function count(counter: Counter, holder: string): Promise<QuotaUse> {
  try {
    return useOf(await counter.consume(holder), false);
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return useOf(refusal, true);
    throw refusal;
  }
}

const useOf = ({ remainingPoints, msBeforeNext }: RateLimiterRes, isExceeded: boolean): QuotaUse => ({
  isExceeded,
  remaining: isExceeded ? 0 : remainingPoints,
  resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1_000)),
});
