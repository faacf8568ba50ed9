import { findRedis, startRedis } from '@drydock/process/redis';
import type { DevConfig } from './dev-config';
import type { Member, Running } from './supervisor';

/** Which queue this start uses: a Redis of the user's, a private one of ours, or tables in our Postgres. */
export type QueueChoice = { kind: 'redis-url'; url: string } | { kind: 'redis-child' } | { kind: 'postgres' };

/**
 * REDIS_URL, else a Valkey or Redis on the PATH, else Postgres; QUEUE_BACKEND forces one of the two backends.
 * @throws when Redis is forced and there is none
 */
export function chooseQueue(config: Pick<DevConfig, 'queueBackend' | 'redisUrl'>): QueueChoice {
  if (config.queueBackend === 'postgres') return { kind: 'postgres' };
  if (config.redisUrl !== undefined) return { kind: 'redis-url', url: config.redisUrl };
  if (findRedis() !== null) return { kind: 'redis-child' };
  if (config.queueBackend === 'redis') throw new Error('QUEUE_BACKEND=redis needs REDIS_URL, or valkey-server or redis-server on the PATH');
  return { kind: 'postgres' };
}

/** The private Redis as a supervised process. `onUrl` gets its URL, the same at every start. */
export function redisMember(options: { folder: string; port: number; isEphemeral: boolean; onLog: (text: string) => void }): {
  member: Member;
  url: () => string;
} {
  let url = '';
  const start = async (): Promise<Running> => {
    const server = await startRedis(options);
    url = server.url;
    return { port: server.port, proof: server.proof, program: '', exited: server.exited, stop: () => server.stop() };
  };
  return { member: { name: 'redis', start }, url: () => url };
}
