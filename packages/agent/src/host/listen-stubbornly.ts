import type { Server } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { errorCodeOf } from '@drydock/process/error-code';

/**
 * Listens on a port that always belongs to the same thing. While another process holds the port (the process that this
 * one replaces, at a quick restart), it tries again for `limitMs`, and then throws the system's error.
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
