import { setTimeout as wait } from 'node:timers/promises';
import { scaled } from '@drydock/process/time-out-scale';
import { openRedis, type RedisClient } from '@drydock/service/redis/open-redis';
import type { Log } from '@drydock/service/telemetry/log';

/**
 * Redis while it answers; otherwise nothing. A Redis that is down or frozen is tried again in the background, never by
 * a request.
 */
export interface QuotaStore {
  client: RedisClient;
  isUsable(): boolean;
  /** Call it after a failure: nothing is asked until a ping was answered. */
  reportFailure(error: unknown): void;
  close(): void;
}

/**
 * The time limit of a command. A round trip on a local network takes less than 1 ms. When Redis freezes, a request
 * waits this long once.
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
  // Logged once when it goes and once when it is back, not at every attempt.
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
