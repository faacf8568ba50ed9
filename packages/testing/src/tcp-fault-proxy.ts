import net from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** Faults of the network, in both directions. A change of a fault also affects open connections. */
export interface NetworkFaults {
  /** The delay of each chunk, in milliseconds. */
  latencyMs: number;
  /** The most bytes per second in each direction of a connection. 0 means no limit. */
  bytesPerSecond: number;
  /** True while nothing is passed on. The connections stay open without an error. */
  isBlackhole: boolean;
}

export interface TcpFaultProxy {
  port: number;
  faults: NetworkFaults;
  connections(): number;
  /** Resets every open connection (RST). New connections are still accepted. */
  reset(): void;
  /** Ends the direction from the upstream to the client (FIN) of every connection. The other direction stays open. */
  halfClose(): void;
  /** Passes on the next `bytes` bytes from `side`, and then resets the connection that carried the last of them. */
  cutAfter(side: 'client' | 'upstream', bytes: number): void;
  close(): Promise<void>;
}

interface Pair {
  client: net.Socket;
  upstream: net.Socket;
}

/**
 * Starts a proxy on the loopback address. The proxy passes connections on to any TCP server and behaves like a bad
 * network.
 */
export async function startTcpFaultProxy(target: { host: string; port: number }): Promise<TcpFaultProxy> {
  const faults: NetworkFaults = { latencyMs: 0, bytesPerSecond: 0, isBlackhole: false };
  const pairs = new Set<Pair>();
  const cut: { side?: 'client' | 'upstream'; left: number } = { left: 0 };

  const join = (client: net.Socket): void => {
    const upstream = net.connect({ ...target, allowHalfOpen: true });
    const pair: Pair = { client, upstream };
    pairs.add(pair);
    const passing = (side: 'client' | 'upstream', chunk: Buffer): Buffer | null => {
      if (cut.side !== side) return chunk;
      cut.left -= chunk.length;
      if (cut.left > 0) return chunk;
      delete cut.side;
      return chunk.subarray(0, chunk.length + cut.left);
    };
    const end = (): void => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.setNoDelay(true).on('error', end).on('close', end);
    client.pipe(slow(faults, (chunk) => carry(pair, 'client', chunk, passing))).pipe(upstream);
    upstream.pipe(slow(faults, (chunk) => carry(pair, 'upstream', chunk, passing))).pipe(client);
  };
  const server = net.createServer({ allowHalfOpen: true }, join);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  const resetAll = (): void => {
    for (const pair of pairs) resetPair(pair);
  };
  return {
    port: address.port,
    faults,
    connections: () => pairs.size,
    reset: resetAll,
    halfClose: () => {
      for (const { client } of pairs) client.end();
    },
    cutAfter: (side, bytes) => Object.assign(cut, { side, left: bytes }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        resetAll();
      }),
  };
}

type Passing = (side: 'client' | 'upstream', chunk: Buffer) => Buffer | null;

/**
 * Returns the chunk, or its part before a cut. After a cut, the connection is reset 5 ms later, so that the part before
 * the cut is still sent.
 */
function carry(pair: Pair, side: 'client' | 'upstream', chunk: Buffer, passing: Passing): Buffer {
  const rest = passing(side, chunk) ?? chunk;
  if (rest.length < chunk.length || rest !== chunk) setTimeout(() => resetPair(pair), 5);
  return rest;
}

function resetPair({ client, upstream }: Pair): void {
  client.resetAndDestroy();
  upstream.resetAndDestroy();
}

/** Passes chunks on in order. Each chunk is delayed by the faults of that moment. */
function slow(faults: NetworkFaults, cutting: (chunk: Buffer) => Buffer): Transform {
  const pass = async (chunk: Buffer): Promise<Buffer> => {
    while (faults.isBlackhole) await sleep(20, undefined, { ref: false });
    const waitMs = faults.latencyMs + (faults.bytesPerSecond > 0 ? (1_000 * chunk.length) / faults.bytesPerSecond : 0);
    if (waitMs > 0) await sleep(waitMs, undefined, { ref: false });
    return cutting(chunk);
  };
  return new Transform({
    highWaterMark: 16_384,
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      pass(chunk).then(
        (rest) => done(null, rest),
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
      );
    },
  });
}
