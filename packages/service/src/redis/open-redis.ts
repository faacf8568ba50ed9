import { Cluster, Redis, type RedisOptions } from 'ioredis';

interface RedisNode {
  host: string;
  port: number;
}

interface Access {
  username?: string;
  password?: string;
  isTls: boolean;
}

/** The address of a Redis: a single server, a cluster, or a master that sentinels know. */
type RedisAddress = Access &
  (
    | { kind: 'single'; node: RedisNode; db: number }
    /** Some nodes of a cluster, from which the client learns the others. */
    | { kind: 'cluster'; nodes: readonly RedisNode[] }
    /** The sentinels, and the name by which they know the master. */
    | { kind: 'sentinel'; nodes: readonly RedisNode[]; master: string; db: number; sentinelPassword?: string }
  );

/**
 * Parses `redis://[user:password@]host[:port][/db]`, `redis+cluster://[user:password@]host:port[?node=host:port&…]` or
 * `redis+sentinel://[user:password@]host:port/master[/db][?node=host:port&…][&sentinelPassword=…]`. `rediss` stands for
 * TLS. @throws TypeError whose message does not contain the password
 */
export function parseRedisUrl(text: string): RedisAddress {
  const url = new URL(text);
  const [, tls, kind = 'single'] = /^redis(s?)(?:\+(cluster|sentinel))?:$/.exec(url.protocol) ?? [];
  if (tls === undefined)
    throw new TypeError('a Redis is redis://, redis+cluster:// or redis+sentinel://, with rediss for TLS');
  const [, first = '', second = ''] = url.pathname.split('/');
  const access: Access = {
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    isTls: tls === 's',
  };
  const usualPort = kind === 'sentinel' ? 26_379 : 6_379;
  const nodes = [`${url.hostname}:${url.port || usualPort}`, ...url.searchParams.getAll('node')].map((node) =>
    nodeOf(node, usualPort),
  );
  if (kind === 'cluster') return { ...access, kind, nodes };
  if (kind === 'sentinel') {
    if (first === '') throw new TypeError('redis+sentinel:// needs the name of its master as path');
    const sentinelPassword = url.searchParams.get('sentinelPassword');
    const ours = sentinelPassword === null ? {} : { sentinelPassword };
    return { ...access, ...ours, kind, nodes, master: decodeURIComponent(first), db: dbOf(second) };
  }
  return {
    ...access,
    kind: 'single',
    node: nodeOf(`${url.hostname}:${url.port || usualPort}`, usualPort),
    db: dbOf(first),
  };
}

function nodeOf(text: string, usualPort: number): RedisNode {
  const { hostname, port } = new URL(`redis://${text}`);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || usualPort) };
}

function dbOf(text: string): number {
  if (!/^\d{0,4}$/.test(text)) throw new TypeError('the number of the database is no number');
  return Number(text);
}

export type RedisClient = Redis | Cluster;

/** The settings that the caller decides, the same for every kind of Redis. */
type RedisBehaviour = Pick<
  RedisOptions,
  'enableOfflineQueue' | 'enableAutoPipelining' | 'commandTimeout' | 'connectTimeout' | 'maxRetriesPerRequest'
> & {
  /** Milliseconds until the next attempt to connect. */
  retryStrategy(times: number): number;
};

/**
 * Whether an error shows that the connection leads to a former master. Only a new connection finds the present master,
 * and the client opens none by itself while the old connection works.
 */
const isDemoted = (error: Error): boolean => error.message.startsWith('READONLY');

/**
 * How long ioredis waits for a socket to close before it destroys the socket, in milliseconds. If the socket has closed
 * already when the client disconnects, ioredis waits for the whole time and keeps the process alive meanwhile.
 */
const disconnectTimeoutMs = 200;

/**
 * Opens a client of a single Redis, of the master that Sentinel names, or of a Cluster, by its URL; see {@link
 * parseRedisUrl}. The client connects by itself.
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
