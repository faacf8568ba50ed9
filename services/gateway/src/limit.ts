import type { Caller } from '@drydock/service-kit/internal-token';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { type CountOne, createBatchCounter, type WindowCount } from './batch-counter';
import type { Quota, QuotaName, QuotaUse } from './quota';
import type { QuotaStore } from './quota-store';

/** Counts a call. Never rejects and never waits long: without Redis each gateway counts by itself. */
export type Limit = (quota: Quota, caller: Caller) => Promise<QuotaUse>;

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
    if (store === undefined || common === undefined || !store.isUsable()) return useOf(quota, await local(holder));
    try {
      return useOf(quota, await common(holder));
    } catch (error) {
      store.reportFailure(error);
      return useOf(quota, await local(holder));
    }
  };
}

function createCounters(quota: Quota, store: QuotaStore | undefined): { local: CountOne; common: CountOne | undefined } {
  const options = { points: quota.requestsMax, duration: quota.windowSeconds, keyPrefix: `drydock:quota:${quota.name}` };
  const memory = new RateLimiterMemory(options);
  const local: CountOne = (holder) => count(memory, holder, 1);
  if (store === undefined) return { local, common: undefined };
  const redis = new RateLimiterRedis({ ...options, storeClient: store.client, rejectIfRedisNotReady: true });
  return { local, common: createBatchCounter((holder, amount) => count(redis, holder, amount)) };
}

/** Resolves also when the window is full; rejects with whatever kept the counter from counting. */
async function count(limiter: RateLimiterMemory | RateLimiterRedis, holder: string, amount: number): Promise<WindowCount> {
  try {
    const { consumedPoints, msBeforeNext } = await limiter.consume(holder, amount);
    return { consumed: consumedPoints, msBeforeNext };
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return { consumed: refusal.consumedPoints, msBeforeNext: refusal.msBeforeNext };
    throw refusal;
  }
}

const useOf = ({ requestsMax }: Quota, { consumed, msBeforeNext }: WindowCount): QuotaUse => ({
  isExceeded: consumed > requestsMax,
  remaining: Math.max(0, requestsMax - consumed),
  resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1_000)),
});
