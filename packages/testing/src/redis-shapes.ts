import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findFreePort, findRedis, type GuardedChild, spawnGuarded } from '@drydock/process';
import { Redis } from 'ioredis';
import { until } from './wait';

/** This password may stand in the code, because the servers exist only during a test. */
const password = 'a-password-of-tests';

interface Server {
  port: number;
  child: GuardedChild;
  /** Sends one command over a new connection. */
  ask(command: string, ...args: (string | number)[]): Promise<unknown>;
}

async function startServer(folder: string, lines: readonly string[], { isSentinel = false } = {}): Promise<Server> {
  const program = findRedis();
  if (program === null) throw new Error('There is no Redis here; ask queueBackends() first');
  const port = await findFreePort();
  const home = mkdtempSync(path.join(folder, 'server-'));
  const file = path.join(home, 'redis.conf');
  const common = [`port ${port}`, 'bind 127.0.0.1', `dir ${home}`, 'save ""', 'appendonly no'];
  writeFileSync(
    file,
    [...common, ...(isSentinel ? [] : [`requirepass ${password}`, `masterauth ${password}`]), ...lines].join('\n'),
  );
  const child = await spawnGuarded(program, [file, ...(isSentinel ? ['--sentinel'] : [])], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'ignore'],
    signalOnOrphan: 'SIGKILL',
  });
  const ask: Server['ask'] = async (command, ...args) => {
    const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: 3, ...(isSentinel ? {} : { password }) });
    client.on('error', () => undefined);
    try {
      return await client.call(command, ...args);
    } finally {
      client.disconnect();
    }
  };
  await until(async () => (await ask('PING')) === 'PONG', { timeoutMs: 20_000, what: 'a Redis' });
  return { port, child, ask };
}

async function inFolder<T extends object>(
  start: (folder: string, servers: Server[]) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-redis-shape-'));
  const servers: Server[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(servers.map(({ child }) => child.stop('SIGKILL', 5_000)));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return { ...(await start(folder, servers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

const slots = 16_384;

/** Starts a Redis Cluster: three masters, each with a third of the slots. */
export const startRedisCluster = () =>
  inFolder(async (folder, servers) => {
    for (let node = 0; node < 3; node += 1)
      servers.push(await startServer(folder, ['cluster-enabled yes', 'cluster-node-timeout 5000']));
    for (const [index, server] of servers.entries()) {
      const [from, to] = [index, index + 1].map((third) => Math.floor((slots * third) / servers.length));
      await server.ask('CLUSTER', 'ADDSLOTSRANGE', from ?? 0, (to ?? slots) - 1);
      for (const { port } of servers) await server.ask('CLUSTER', 'MEET', '127.0.0.1', port);
    }
    const isWhole = async (server: Server) => String(await server.ask('CLUSTER', 'INFO')).includes('cluster_state:ok');
    const areWhole = async () => (await Promise.all(servers.map(isWhole))).every(Boolean);
    await until(areWhole, { timeoutMs: 30_000, what: 'a whole cluster' });
    const [first, ...others] = servers.map(({ port }) => `127.0.0.1:${port}`);
    return { url: `redis+cluster://:${password}@${first}?${others.map((node) => `node=${node}`).join('&')}` };
  });

/** Starts a master, its replica, and a sentinel that promotes the replica when the master dies. */
export const startRedisSentinel = () =>
  inFolder(async (folder, servers) => {
    const master = await startServer(folder, []);
    servers.push(master, await startServer(folder, [`replicaof 127.0.0.1 ${master.port}`]));
    const watching = [
      `sentinel monitor queue 127.0.0.1 ${master.port} 1`,
      `sentinel auth-pass queue ${password}`,
      'sentinel down-after-milliseconds queue 1000',
      'sentinel failover-timeout queue 10000',
    ];
    const sentinel = await startServer(folder, watching, { isSentinel: true });
    servers.push(sentinel);
    const knowsReplica = async () => {
      const replicas = await sentinel.ask('SENTINEL', 'REPLICAS', 'queue');
      return Array.isArray(replicas) && replicas.length === 1;
    };
    await until(knowsReplica, { timeoutMs: 30_000, what: 'a replica that is known' });
    return {
      url: `redis+sentinel://:${password}@127.0.0.1:${sentinel.port}/queue`,
      killMaster: () => void process.kill(master.child.proof.pid, 'SIGKILL'),
    };
  });
