import { randomInt } from 'node:crypto';
import net from 'node:net';

/**
 * The range is below the kernel's ports for outgoing connections, and below the ports that the agents keep
 * (`PortAllocator`).
 */
const range = { first: 10_000, end: 20_000 };
const triesMax = 100;

/**
 * Returns a free loopback port. The port is random, from a range that the kernel does not use. So another program
 * rarely takes the port before the caller binds it. If that happens, the caller calls this function again.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const port = randomInt(range.first, range.end);
    if (await isPortFree(port)) return port;
  }
  throw new Error(`no free port between ${range.first} and ${range.end}`);
}

/** Matches the error of a server whose port was taken. */
const lostPort = /address already in use/i;
const startsMax = 5;

/** Starts a server, at most five times: again on another port if its port was taken. A `chosen` port is tried once. */
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

/** Tells whether a server could listen on this loopback port now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
