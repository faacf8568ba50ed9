import type { Server } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { errorCodeOf } from '@drydock/process/error-code';

/**
 * Listens on a port that belongs to something for ever. It is tried again while another process holds it (the one that we replace, at a quick restart),
 * for `limitMs`; then throws the system's error.
 */
export async function listenStubbornly(server: Server, port: number, host: string, limitMs: number): Promise<void> {
  const untilMs = performance.now() + limitMs;
  for (;;) {
    try {
      await listenOnce(server, port, host);
      return;
    } catch (error) {
      const isTaken = errorCodeOf(error) === 'EADDRINUSE';
      if (!isTaken || performance.now() > untilMs) throw error;
      await wait(100);
    }
  }
}

function listenOnce(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
