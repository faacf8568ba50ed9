export interface RedisNode {
  host: string;
  port: number;
}

interface Access {
  username?: string;
  password?: string;
  isTls: boolean;
}

/** Where a Redis is, whatever its shape. */
export type RedisAddress = Access &
  (
    | { kind: 'single'; node: RedisNode; db: number }
    /** Any of its nodes; they know the others. */
    | { kind: 'cluster'; nodes: readonly RedisNode[] }
    /** Its sentinels, and their name for the master. */
    | { kind: 'sentinel'; nodes: readonly RedisNode[]; master: string; db: number; sentinelPassword?: string }
  );

/**
 * `redis://[user:password@]host[:port][/db]`, `redis+cluster://[user:password@]host:port[?node=host:port&…]` or
 * `redis+sentinel://[user:password@]host:port/master[/db][?node=host:port&…][&sentinelPassword=…]`; `rediss` for TLS.
 * @throws TypeError that names the error and never the password
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
