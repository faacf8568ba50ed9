import type { Child } from './children';
import { compare, rowOf, startArena } from './gateway-arena';
import { printRows } from './report';

/**
 * Compares the gateway with proxies in front of the same trivial upstream. The gateway authenticates, limits and signs
 * each request; the proxies only pass it on.
 */
export async function benchGateway(): Promise<void> {
  const rounds = 3;
  const arena = await startArena();
  try {
    const contestants = new Map<string, Child>([['gateway', await arena.startGateway()]]);
    const peers = ['http-proxy-3', 'http-proxy-middleware'];
    for (const role of peers) contestants.set(role, await arena.startPeer(role));
    const results = await compare(contestants, rounds);
    const rows = peers.map((name) =>
      rowOf(results, 'GET before a trivial upstream, 32 connections', 'gateway', name, 1),
    );
    printRows(
      'Gateway',
      rows,
      `Median of ${rounds} rounds. ${process.env['REDIS_URL'] === undefined ? 'Quotas in memory.' : 'Quotas in Redis.'}`,
    );
  } finally {
    await arena.stop();
  }
}
