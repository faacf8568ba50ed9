// Plays the clients of one organisation, in a process of its own so that no other work slows them down. Each client
// keeps one connection. It pauses after each answer, and longer if Retry-After says so. The test sends messages:
// - a `LoadSetup` starts the clients. When each has had an answer or an error, this process sends `connected`.
// - `measure` empties `admittedMs` and `shed`.
// - `end` waits for the last answer of each client. Then this process sends the `LoadTally`.
import { randomUUID } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, errors } from 'undici';
import { z } from 'zod';

const setupSchema = z.object({
  /** The URLs of gateways. A new connection goes to a ready gateway, as behind a load balancer. */
  urls: z.array(z.string()).min(1),
  token: z.string(),
  clients: z.int(),
  /**
   * The calls that each client makes in turn. A call with a body is a write. A call that is refused with Retry-After is
   * repeated. A repeated write has the same Idempotency-Key.
   */
  calls: z.array(z.object({ path: z.string(), body: z.record(z.string(), z.unknown()).optional() })).min(1),
  pauseMs: z.int(),
});
export type LoadSetup = z.infer<typeof setupSchema>;

export interface LoadTally {
  /** The milliseconds of each successful request since `measure`. */
  admittedMs: number[];
  /** The number of successful writes since the start. */
  written: number;
  /** The number of refusals with Retry-After since `measure`, by status and code. */
  shed: Record<string, number>;
  /** The number of socket errors and of all other answers since the start. */
  wrong: Record<string, number>;
  /** The number of connections that were opened since the start. */
  connections: number;
}

/** The number of clients that share an IP address. The gateway limits the connections of an address. */
const clientsOfAnAddress = 200;
const readyEveryMs = 250;
const ending = new AbortController();
const tally: LoadTally = { admittedMs: [], written: 0, shed: {}, wrong: {}, connections: 0 };
const ready = new Set<string>();
let turn = 0;

const count = (counts: Record<string, number>, what: string): void => {
  counts[what] = (counts[what] ?? 0) + 1;
};

const pause = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal: ending.signal }).catch(() => undefined);

/** Polls the readiness of a gateway until this process ends, because clients can still open connections after `end`. */
async function watchReadiness(url: string): Promise<never> {
  for (;;) {
    const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } }).catch(() => undefined);
    await answer?.arrayBuffer().catch(() => undefined);
    if (answer?.status === 200) ready.add(url);
    else ready.delete(url);
    await sleep(readyEveryMs);
  }
}

/**
 * The most connections that are opened at the same time. The gateway closes a new connection if its first request does
 * not come within 5 s. With more connections at the same time, this busy process could send a first request too late.
 */
const connectingMax = 64;
const silentMsMax = 2_000;
let connecting = 0;
const waiting: Array<() => void> = [];

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (connecting >= connectingMax) await new Promise<void>((resolve) => waiting.push(resolve));
  else connecting += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) connecting -= 1;
    else next();
  }
}

/** Connects to a ready gateway. If that gateway refuses the connection, tries the next. */
async function connect(urls: readonly string[], localAddress: string): Promise<net.Socket> {
  for (let refused = 0; ; ) {
    while (ready.size === 0) await sleep(readyEveryMs);
    turn += 1;
    const choice = urls.filter((url) => ready.has(url));
    const url = choice[turn % choice.length] ?? '';
    const startedMs = performance.now();
    const socket = net.connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress, noDelay: true });
    try {
      await once(socket, 'connect');
      if (performance.now() - startedMs < silentMsMax) return socket;
      socket.destroy();
    } catch (error) {
      refused += 1;
      if (refused === urls.length * 2) throw error;
    }
  }
}

type Call = LoadSetup['calls'][number];

/** The outcome of a call. The client calls again after `again` milliseconds, with the same call unless `isOver`. */
interface Asked {
  again: number;
  isOver: boolean;
}

/** Makes the calls of one client until the message `end`. Calls `onAnswer` after each answer or error. */
async function runClient(
  { urls, token, calls, pauseMs }: LoadSetup,
  number: number,
  onAnswer: () => void,
): Promise<void> {
  const address = Math.floor(number / clientsOfAnAddress) + 2;
  const client = new Client(urls[0] ?? '', {
    headersTimeout: 120_000,
    // The client never closes an idle connection, so that only the gateway decides how long a connection lives.
    keepAliveTimeout: 600_000,
    keepAliveTimeoutThreshold: 0,
    connect: (_options, callback) => {
      tally.connections += 1;
      inTurn(() => connect(urls, `127.0.${address >> 8}.${address & 255}`)).then(
        (socket) => callback(null, socket),
        (error: Error) => callback(error, null),
      );
    },
  });
  const ask = async ({ path, body }: Call, key: string): Promise<Asked> => {
    const startedMs = performance.now();
    const isWrite = body !== undefined;
    const written = isWrite ? { 'content-type': 'application/json', 'idempotency-key': key } : {};
    const response = await client.request({
      method: isWrite ? 'POST' : 'GET',
      path,
      headers: { authorization: `Bearer ${token}`, ...written },
      body: isWrite ? JSON.stringify(body) : null,
    });
    const text = await response.body.text();
    if (response.statusCode === (isWrite ? 201 : 200)) {
      tally.admittedMs.push(performance.now() - startedMs);
      if (isWrite) tally.written += 1;
      return { again: pauseMs, isOver: true };
    }
    const what = `${response.statusCode} ${/problems\/(\w+)/.exec(text)?.[1] ?? text.slice(0, 200)}`;
    const again = Number(response.headers['retry-after'] ?? Number.NaN) * 1_000;
    const isShed = [429, 503].includes(response.statusCode) && again >= 1_000;
    count(isShed ? tally.shed : tally.wrong, what);
    return isShed ? { again, isOver: false } : { again: pauseMs, isOver: true };
  };
  const insist = async (call: Call): Promise<void> => {
    const key = randomUUID();
    for (;;) {
      const { again, isOver } = await ask(call, key).catch((error: unknown): Asked => {
        count(tally.wrong, error instanceof errors.UndiciError ? `${error.code} ${error.message}` : String(error));
        return { again: pauseMs, isOver: true };
      });
      onAnswer();
      // The pauses differ, so that the clients do not all call at the same moment.
      const ms = again * (1 + Math.random() / 5);
      await (isOver ? pause(ms) : sleep(ms));
      if (isOver) return;
    }
  };
  await pause(Math.random() * pauseMs);
  for (let turns = number; !ending.signal.aborted; turns += 1)
    await insist(calls[turns % calls.length] ?? { path: '' });
  await client.close();
}

const clients: Promise<void>[] = [];

function start(setup: LoadSetup): void {
  for (const url of setup.urls) void watchReadiness(url);
  let silent = setup.clients;
  for (let number = 0; number < setup.clients; number += 1) {
    let isSilent = true;
    const onAnswer = (): void => {
      if (isSilent) silent -= 1;
      if (isSilent && silent === 0) process.send?.('connected');
      isSilent = false;
    };
    clients.push(runClient(setup, number, onAnswer));
  }
}

async function end(): Promise<void> {
  ending.abort();
  await Promise.all(clients);
  process.send?.(tally);
}

setMaxListeners(0, ending.signal);
process.on('message', (message) => {
  if (message === 'measure') Object.assign(tally, { admittedMs: [], shed: {} });
  else if (message === 'end') void end();
  else start(setupSchema.parse(message));
});
// The test has ended, so the load must not continue.
process.on('disconnect', () => process.exit(0));
