// Clients of one organisation in a process of their own, so that no other work makes them slow. Each keeps one
// connection. A client pauses after each answer, and longer when a Retry-After tells it to. The process starts with
// `LoadSetup`, and prints `connected` when each client has had an answer. `measure` starts the count again. At `end`
// each client waits for its last answer.
import { randomUUID } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, errors } from 'undici';
import { z } from 'zod';

const setupSchema = z.object({
  /** Gateways. A new connection goes to a gateway that is ready, as a load balancer does it. */
  urls: z.array(z.string()).min(1),
  token: z.string(),
  clients: z.int(),
  /**
   * The calls are made in turn. A call with a body is a write. It keeps its Idempotency-Key until it is carried out.
   */
  calls: z.array(z.object({ path: z.string(), body: z.record(z.string(), z.unknown()).optional() })).min(1),
  pauseMs: z.int(),
});
export type LoadSetup = z.infer<typeof setupSchema>;

/** The answers they got. */
export interface LoadTally {
  /** Milliseconds that each request took that was carried out. */
  admittedMs: number[];
  /** Writes that were carried out since the start. */
  written: number;
  /** Refusals with Retry-After, by status and code. */
  shed: Record<string, number>;
  /** All other answers since the start: errors of sockets, and refusals without Retry-After. */
  wrong: Record<string, number>;
  /** Connections since the start. */
  connections: number;
}

/** The number of clients with the same address, because the gateway limits connections by address. */
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

/** Runs for as long as the process lives, because the last answers are waited for after `end`. */
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
 * The most connections that are being opened at a time. It also bounds how long one may be open before this process,
 * which is busy with the others, looks at it. The gateway gives a connection 5 s for its first request.
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

/** Connects to a gateway that is ready, and to another one when the first refuses. */
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

/** Milliseconds until the client asks again. It repeats the same call, unless `isOver`. */
interface Asked {
  again: number;
  isOver: boolean;
}

/** Runs until the end. Calls `onAnswer` for each answer. */
async function runClient(
  { urls, token, calls, pauseMs }: LoadSetup,
  number: number,
  onAnswer: () => void,
): Promise<void> {
  const address = Math.floor(number / clientsOfAnAddress) + 2;
  const client = new Client(urls[0] ?? '', {
    headersTimeout: 120_000,
    // The gateway decides how long a connection lives.
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
      // Spread, as clients are.
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
// The test that started this process is gone.
process.on('disconnect', () => process.exit(0));
