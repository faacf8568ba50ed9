import { randomInt } from 'node:crypto';
import net from 'node:net';

/**
 * The range lies below the ports that the kernel gives to outgoing connections, and apart from those that agents keep
 * for ever (PortAllocator).
 */
const range = { first: 10_000, end: 20_000 };
const triesMax = 100;

/**
 * A loopback port that nobody listens on now. It is drawn at random from a range that the kernel does not use by
 * itself, so it is rarely taken before the caller binds it. A caller that cannot bind it asks for another.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const port = randomInt(range.first, range.end);
    if (await isPortFree(port)) return port;
  }
  throw new Error(`no free port between ${range.first} and ${range.end}`);
}

/** The last message of a server that lost its port to another one. */
const lostPort = /address already in use/i;
const startsMax = 5;

/**
 * Starts a server, and again on another port if its last output says that the address is in use. A port that the caller
 * has chosen is tried once.
 */
export async function startOnFreePort<T>(chosen: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  if (chosen !== undefined) return start(chosen);
  for (let starts = 1; ; starts += 1) {
    try {
      return await start(await findFreePort());
    } catch (error) {
      if (starts === startsMax || !(error instanceof Error && lostPort.test(error.message))) throw error;
    }
  }
}

/** Whether a server could listen on this loopback port now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
