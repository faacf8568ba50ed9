import type { Caller } from '@drydock/service-kit/internal-token';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { type CountOne, createBatchCounter, type WindowCount } from './batch-counter';
import { createLocalCounter } from './local-counter';
import type { Quota, QuotaName, QuotaUse } from './quota';
import type { QuotaStore } from './quota-store';

/** Counts a call. Never rejects and never waits long: without Redis each gateway counts by itself, at once. */
export type Limit = (quota: Quota, caller: Caller) => QuotaUse | Promise<QuotaUse>;

/** `store` undefined: there is no Redis, each process counts alone. */
export function createLimit(quotas: Readonly<Record<QuotaName, Quota>>, store: QuotaStore | undefined): Limit {
  const counters = {
    read: createCounters(quotas.read, store),
    write: createCounters(quotas.write, store),
    mint: createCounters(quotas.mint, store),
  };
  return (quota, caller) => {
    const { local, common } = counters[quota.name];
    const holder = quota.holderOf(caller);
    if (store === undefined || common === undefined || !store.isUsable()) return useOf(quota, local(holder));
    return common(holder).then(
      (count) => useOf(quota, count),
      (error: unknown) => {
        store.reportFailure(error);
        return useOf(quota, local(holder));
      },
    );
  };
}

interface Counters {
  local: (holder: string) => WindowCount;
  common: CountOne | undefined;
}

function createCounters({ name, requestsMax, windowSeconds }: Quota, store: QuotaStore | undefined): Counters {
  const local = createLocalCounter(windowSeconds * 1_000);
  if (store === undefined) return { local, common: undefined };
  const options = { points: requestsMax, duration: windowSeconds, keyPrefix: `drydock:quota:${name}` };
  const redis = new RateLimiterRedis({ ...options, storeClient: store.client, rejectIfRedisNotReady: true });
  return { local, common: createBatchCounter((holder, amount) => count(redis, holder, amount)) };
}

/** Resolves also when the window is full; rejects with whatever kept the counter from counting. */
async function count(limiter: RateLimiterRedis, holder: string, amount: number): Promise<WindowCount> {
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
