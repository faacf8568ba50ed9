import { findRedis } from '@drydock/process/redis';

export type QueueBackend = 'redis' | 'postgres';

/**
 * The queue backends that tests run over, for `describe.each(queueBackends())`: both, or only Postgres where no Redis or Valkey is on
 * the PATH (and says so), or the one that QUEUE_BACKEND names.
 */
export function queueBackends(): QueueBackend[] {
  const forced = process.env['QUEUE_BACKEND'];
  if (forced === 'redis' || forced === 'postgres') return [forced];
  if (findRedis() !== null) return ['redis', 'postgres'];
  process.stderr.write('No redis-server or valkey-server on the PATH: the queue is tested on Postgres only\n');
  return ['postgres'];
}
