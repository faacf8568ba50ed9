import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { errorCodeOf } from '@drydock/process';

/** The lowest port that is given out. It is above the ports that `infra/dev` uses on a developer's machine. */
const lowest = 25_000;
const ephemeralDefault = 32_768;
const triesMax = 500;

/**
 * Returns the first port that the kernel may use for outgoing connections, or 32,768 if that port is unknown or too
 * low. Only lower ports are given out. Otherwise an outgoing connection could take a port that was given out, while the
 * agent restarts.
 */
function firstEphemeralPort(): number {
  try {
    const first = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/)[0]);
    return first > lowest + 1_000 ? first : ephemeralDefault;
  } catch {
    return ephemeralDefault;
  }
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, host, () => probe.close(() => resolve(true)));
  });
}

/** Gives out ports. The caller records each port, and keeps it until `release`. */
export class PortAllocator {
  private readonly host: string;
  private readonly taken = new Set<number>();

  constructor(host: string) {
    this.host = host;
  }

  /** Marks a port as taken, because a record of the caller names it. */
  reserve(port: number): void {
    this.taken.add(port);
  }

  release(port: number): void {
    this.taken.delete(port);
  }

  async allocate(): Promise<number> {
    const end = firstEphemeralPort();
    for (let tries = 0; tries < triesMax; tries++) {
      const port = randomInt(lowest, end);
      if (this.taken.has(port)) continue;
      this.taken.add(port);
      if (await isFree(port, this.host)) return port;
      this.taken.delete(port);
    }
    throw new Error(`no free port between ${lowest} and ${end}`);
  }
}

/**
 * Listens on a port. At a quick restart the server's previous process may still hold the port, so this function tries
 * again for `limitMs` before it throws the system's error.
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

async function listenOnce(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  await once(server, 'listening');
}
