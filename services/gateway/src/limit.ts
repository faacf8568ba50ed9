import type { Caller } from '@drydock/service/access';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import {
  type CountOne,
  createBatchCounter,
  createLocalCounter,
  type LocalCounter,
  type WindowCount,
} from './local-counter';
import type { Quota, QuotaName, QuotaStore, QuotaUse } from './quota';

type Ask = (quota: Quota, caller: Caller) => QuotaUse | Promise<QuotaUse>;

/**
 * Counts the calls of each caller in windows. Never rejects and never waits long: without Redis each gateway counts by
 * itself.
 */
export interface Limit {
  /** Counts a call. */
  count: Ask;
  /** Asks without counting the call. */
  peek: Ask;
}

/** `store` undefined: there is no Redis, and each process counts alone. */
export function createLimit(quotas: Readonly<Record<QuotaName, Quota>>, store: QuotaStore | undefined): Limit {
  const counters = {
    read: createCounters(quotas.read, store),
    write: createCounters(quotas.write, store),
    mint: createCounters(quotas.mint, store),
  };
  const ask = (amount: 0 | 1): Ask => {
    return (quota, caller) => {
      const { local, common } = counters[quota.name];
      const holder = quota.holderOf(caller);
      if (store === undefined || common === undefined || !store.isUsable()) return useOf(quota, local(holder, amount));
      return (amount === 0 ? common.peek(holder) : common.count(holder)).then(
        (count) => useOf(quota, count),
        (error: unknown) => {
          store.reportFailure(error);
          return useOf(quota, local(holder, amount));
        },
      );
    };
  };
  return { count: ask(1), peek: ask(0) };
}

interface Counters {
  local: LocalCounter;
  common: { count: CountOne; peek: CountOne } | undefined;
}

function createCounters({ name, requestsMax, windowSeconds }: Quota, store: QuotaStore | undefined): Counters {
  const local = createLocalCounter(windowSeconds * 1_000);
  if (store === undefined) return { local, common: undefined };
  const options = { points: requestsMax, duration: windowSeconds, keyPrefix: `drydock:quota:${name}` };
  const redis = new RateLimiterRedis({ ...options, storeClient: store.client, rejectIfRedisNotReady: true });
  return {
    local,
    common: {
      count: createBatchCounter((holder, amount) => count(redis, holder, amount)),
      peek: async (holder) => windowOf(await redis.get(holder), windowSeconds),
    },
  };
}

/** Null: the window has not begun. */
const windowOf = (found: RateLimiterRes | null, windowSeconds: number): WindowCount =>
  found === null
    ? { consumed: 0, msBeforeNext: windowSeconds * 1_000 }
    : { consumed: found.consumedPoints, msBeforeNext: found.msBeforeNext };

/** Resolves even if the window is full; rejects with the error that kept it from counting. */
async function count(limiter: RateLimiterRedis, holder: string, amount: number): Promise<WindowCount> {
  try {
    const { consumedPoints, msBeforeNext } = await limiter.consume(holder, amount);
    return { consumed: consumedPoints, msBeforeNext };
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes)
      return { consumed: refusal.consumedPoints, msBeforeNext: refusal.msBeforeNext };
    throw refusal;
  }
}

const useOf = ({ requestsMax }: Quota, { consumed, msBeforeNext }: WindowCount): QuotaUse => ({
  isExceeded: consumed > requestsMax,
  remaining: Math.max(0, requestsMax - consumed),
  resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1_000)),
});
