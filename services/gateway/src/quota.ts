import { setTimeout as wait } from 'node:timers/promises';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { scaled } from '@drydock/process';
import type { Caller } from '@drydock/service/access';
import { openRedis, type RedisClient } from '@drydock/service/redis';
import type { Log } from '@drydock/service/telemetry';

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
 * The time limit of a command. A round trip on a local network takes less than 1 ms. When Redis freezes, only the
 * requests that have a command under way wait this long.
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
  // A line is logged once when Redis cannot be reached and once when it answers again, not at every attempt.
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

export type QuotaName = Exclude<EndpointDefinition['quota'], 'exempt'>;

/** A limit of requests in a fixed window. */
export interface Quota {
  name: QuotaName;
  requestsMax: number;
  windowSeconds: number;
  /** The holder of the window that a call counts in. */
  holderOf(caller: Caller): string;
}

export type Quotas = Readonly<Record<QuotaName, Quota>>;

const windowSeconds = 60;
const perKey = (caller: Caller): string => caller.keyId;
const perOrganisation = (caller: Caller): string => caller.orgId;

/** The quotas of the specification, multiplied by `scale`. */
export function createQuotas(scale: number): Quotas {
  const requests = (count: number): number => Math.max(1, Math.round(count * scale));
  return {
    read: { name: 'read', requestsMax: requests(600), windowSeconds, holderOf: perKey },
    write: { name: 'write', requestsMax: requests(120), windowSeconds, holderOf: perKey },
    mint: { name: 'mint', requestsMax: requests(20), windowSeconds, holderOf: perOrganisation },
  };
}

/** The state of a window after a request was counted in it. */
export interface QuotaUse {
  isExceeded: boolean;
  remaining: number;
  /** Seconds until the window ends; at least 1. */
  resetSeconds: number;
}

/** A window without any count: for unknown callers, and for calls without a quota. */
const untouched = ({ requestsMax, windowSeconds: resetSeconds }: Quota): QuotaUse => ({
  isExceeded: false,
  remaining: requestsMax,
  resetSeconds,
});

/** The two headers that every answer has, as alternating names and values. */
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
