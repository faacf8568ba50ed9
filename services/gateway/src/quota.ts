import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { scaled } from '@drydock/process';
import type { Caller } from '@drydock/service/access';
import { openRedis, type RedisClient } from '@drydock/service/redis';
import type { Log } from '@drydock/service/telemetry';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

type QuotaName = Exclude<EndpointDefinition['quota'], 'exempt'>;

/** A limit of requests in a fixed window. */
export interface Quota {
  name: QuotaName;
  requestsMax: number;
  windowSeconds: number;
  /** Returns the key or the organisation in whose window the call counts. */
  holderOf(caller: Caller): string;
}

export type Quotas = Readonly<Record<QuotaName, Quota>>;

const windowSeconds = 60;
const perKey = (caller: Caller): string => caller.keyId;
const perOrganisation = (caller: Caller): string => caller.orgId;

/** The quotas of decisions.md, multiplied by `scale`. */
export function createQuotas(scale: number): Quotas {
  const requests = (count: number): number => Math.max(1, Math.round(count * scale));
  return {
    read: { name: 'read', requestsMax: requests(600), windowSeconds, holderOf: perKey },
    write: { name: 'write', requestsMax: requests(120), windowSeconds, holderOf: perKey },
    mint: { name: 'mint', requestsMax: requests(20), windowSeconds, holderOf: perOrganisation },
  };
}

/** The state of a window, as the headers of an answer show it. */
interface QuotaUse {
  isExceeded: boolean;
  remaining: number;
  /** Seconds until the window ends; at least 1. */
  resetSeconds: number;
}

/**
 * The state of a window in which nothing is counted. An answer shows this state if its request needs no key, or was
 * refused before the caller's window was read.
 */
const untouched = ({ requestsMax, windowSeconds: resetSeconds }: Quota): QuotaUse => ({
  isExceeded: false,
  remaining: requestsMax,
  resetSeconds,
});

/** The two quota headers, which every answer has, as alternating names and values. */
export const quotaHeaders = (quota: Quota, use: QuotaUse = untouched(quota)): string[] => [
  'RateLimit-Policy',
  quotaPolicy(quota),
  'RateLimit',
  quotaState(quota, use),
];

/** A quota in the form of draft-ietf-httpapi-ratelimit-headers, such as `"read";q=600;w=60`. */
const quotaPolicy = ({ name, requestsMax, windowSeconds: seconds }: Quota): string =>
  `"${name}";q=${requestsMax};w=${seconds}`;
/** The state of a quota in the form of draft-ietf-httpapi-ratelimit-headers, such as `"read";r=599;t=60`. */
const quotaState = ({ name }: Quota, { remaining, resetSeconds }: QuotaUse): string =>
  `"${name}";r=${remaining};t=${resetSeconds}`;

type Ask = (quota: Quota, caller: Caller) => QuotaUse | Promise<QuotaUse>;

/**
 * Counts the calls of each caller in windows. Never rejects, and never waits long: while Redis does not answer, each
 * gateway counts by itself.
 */
export interface Limit {
  count: Ask;
  /** Reads the window without counting the call. */
  peek: Ask;
}

/** If `store` is undefined, there is no Redis, and each process counts alone. */
export function createLimit(quotas: Quotas, store: QuotaStore | undefined): Limit {
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

/** `found` is null if no call has been counted in the window yet. */
const windowOf = (found: RateLimiterRes | null, windowSeconds: number): WindowCount =>
  found === null
    ? { consumed: 0, msBeforeNext: windowSeconds * 1_000 }
    : { consumed: found.consumedPoints, msBeforeNext: found.msBeforeNext };

/** Counts `amount` calls. Resolves even if the window is full. Rejects if Redis could not count. */
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

/** The state of a window after calls were counted in it. */
interface WindowCount {
  /** All calls that were counted in the window, including the latest. */
  consumed: number;
  msBeforeNext: number;
}

interface Batch {
  waiting: Array<{ resolve(count: WindowCount): void; reject(error: unknown): void }>;
}

/** Counts one call in a holder's window in Redis, or only reads the window. Resolves with the window's state. */
type CountOne = (holder: string) => Promise<WindowCount>;

/**
 * The shortest time in milliseconds between two queries about one holder. A caller that sends one request after the
 * other hardly ever waits for this time, because each answer takes longer.
 */
const everyMs = 1;

/**
 * Joins calls of one holder that arrive shortly after each other into one query, so that under load one round trip
 * serves many calls. Each call still gets its own count, so the quota stays exact. The first call is never delayed.
 */
function createBatchCounter(countMany: (holder: string, amount: number) => Promise<WindowCount>): CountOne {
  const next = new Map<string, Batch>();
  const ask = async (holder: string, { waiting }: Batch): Promise<void> => {
    try {
      const { consumed, msBeforeNext } = await countMany(holder, waiting.length);
      const before = consumed - waiting.length;
      for (const [index, one] of waiting.entries()) one.resolve({ consumed: before + index + 1, msBeforeNext });
    } catch (error) {
      for (const one of waiting) one.reject(error);
    }
  };
  /** Sends one query after the other as long as calls of the holder wait. */
  const run = async (holder: string): Promise<void> => {
    for (;;) {
      const batch = next.get(holder);
      if (batch === undefined || batch.waiting.length === 0) break;
      next.set(holder, { waiting: [] });
      await Promise.all([ask(holder, batch), wait(everyMs)]);
    }
    next.delete(holder);
  };
  return (holder) =>
    new Promise((resolve, reject) => {
      const batch = next.get(holder);
      if (batch !== undefined) {
        batch.waiting.push({ resolve, reject });
        return;
      }
      next.set(holder, { waiting: [{ resolve, reject }] });
      void run(holder);
    });
}

interface Window {
  consumed: number;
  endsMs: number;
}

/** The monotonic clock in whole milliseconds. With a fraction, a window of a minute could show 61 s in the header. */
const wholeMs = (): number => Math.floor(performance.now());

/** Counts one call in the holder's window. With `amount` 0 the window is only read. */
type LocalCounter = (holder: string, amount?: 0 | 1) => WindowCount;

/**
 * Counts calls in this process alone. Each holder has a fixed window, which begins with its first call. Holders are
 * verified keys and organisations, so nobody can make many of them. Windows that have ended are removed from time to
 * time.
 */
export function createLocalCounter(windowMs: number, nowMs: () => number = wholeMs): LocalCounter {
  const windows = new Map<string, Window>();
  let sweepMs = nowMs() + windowMs;
  const open = (holder: string, now: number): Window => {
    if (now >= sweepMs) {
      sweepMs = now + windowMs;
      for (const [old, { endsMs }] of windows) if (now >= endsMs) windows.delete(old);
    }
    const window = { consumed: 0, endsMs: now + windowMs };
    windows.set(holder, window);
    return window;
  };
  return (holder, amount = 1) => {
    const now = nowMs();
    const known = windows.get(holder);
    const window = known !== undefined && now < known.endsMs ? known : open(holder, now);
    window.consumed += amount;
    return { consumed: window.consumed, msBeforeNext: window.endsMs - now };
  };
}

/**
 * The Redis that counts the quotas. While it does not answer, it is not usable and is tried again in the background,
 * never by a request.
 */
export interface QuotaStore {
  client: RedisClient;
  isUsable(): boolean;
  /** Reports that a command failed. Redis is not used again until it has answered a ping. */
  reportFailure(error: unknown): void;
  close(): void;
}

/**
 * The time limit of a command in milliseconds. A round trip on a local network takes less than 1 ms. When Redis
 * freezes, only the requests that have a command under way wait this long.
 */
const redisCommandMs = 100;
const probeEveryMs = 250;
const reconnectMsMax = 1_000;

export function openQuotaStore(url: string, log: Log): QuotaStore {
  const client = openRedis(url, {
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    commandTimeout: scaled(redisCommandMs),
    connectTimeout: scaled(1_000),
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(times * 50, reconnectMsMax),
  });
  let suspended = false;
  let closed = false;
  // One line is logged when Redis fails, and one when it answers again; repeated attempts log nothing.
  const suspend = (error: unknown): void => {
    if (suspended || closed) return;
    suspended = true;
    log.warn({ err: error }, 'quotas are counted in memory: Redis cannot be reached');
    void probe();
  };
  const probe = async (): Promise<void> => {
    while (!closed) {
      await wait(probeEveryMs, undefined, { ref: false });
      if (client.status !== 'ready') continue;
      const answered = await client.ping().catch(() => undefined);
      if (answered === undefined) continue;
      suspended = false;
      log.info('quotas are counted in Redis again');
      return;
    }
  };
  client.on('error', suspend);
  return {
    client,
    isUsable: () => !suspended && client.status === 'ready',
    reportFailure: suspend,
    close: () => {
      closed = true;
      client.disconnect();
    },
  };
}
