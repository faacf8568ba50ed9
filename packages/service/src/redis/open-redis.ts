import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { parseRedisUrl } from './redis-address';

export type RedisClient = Redis | Cluster;

/** The settings of a connection that its caller decides; the same on every shape. */
export type RedisBehaviour = Pick<
  RedisOptions,
  'enableOfflineQueue' | 'enableAutoPipelining' | 'commandTimeout' | 'connectTimeout' | 'maxRetriesPerRequest'
> & {
  /** Milliseconds until the next attempt to connect. */
  retryStrategy(times: number): number;
};

/**
 * Whether an error shows that the connection leads to a former master. Then only a new connection finds the present
 * master, and nothing else would cause one.
 */
const isDemoted = (error: Error): boolean => error.message.startsWith('READONLY');

/**
 * Milliseconds for a socket to end. ioredis waits that long, and keeps the process alive, even if the socket has ended
 * before.
 */
const disconnectTimeoutMs = 200;

/**
 * A client of one Redis, of the master that Sentinel names, or of a Cluster, by its URL; see parseRedisUrl. It connects
 * by itself.
 */
export function openRedis(url: string, { retryStrategy, ...behaviour }: RedisBehaviour): RedisClient {
  const address = parseRedisUrl(url);
  const access = {
    disconnectTimeout: disconnectTimeoutMs,
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
    ...(address.isTls ? { tls: {} } : {}),
  };
  switch (address.kind) {
    case 'single':
      return new Redis({
        ...behaviour,
        ...access,
        ...address.node,
        db: address.db,
        retryStrategy,
        reconnectOnError: isDemoted,
      });
    case 'sentinel':
      return new Redis({
        ...{
          ...behaviour,
          ...access,
          db: address.db,
          retryStrategy,
          sentinelRetryStrategy: retryStrategy,
          reconnectOnError: isDemoted,
        },
        ...{ sentinels: [...address.nodes], name: address.master },
        ...(address.sentinelPassword === undefined ? {} : { sentinelPassword: address.sentinelPassword }),
        ...(address.isTls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
      });
    case 'cluster': {
      const { enableOfflineQueue, enableAutoPipelining, ...ofNodes } = behaviour;
      return new Cluster([...address.nodes], {
        ...(enableOfflineQueue === undefined ? {} : { enableOfflineQueue }),
        ...(enableAutoPipelining === undefined ? {} : { enableAutoPipelining }),
        clusterRetryStrategy: retryStrategy,
        redisOptions: { ...ofNodes, ...access },
      });
    }
  }
}
