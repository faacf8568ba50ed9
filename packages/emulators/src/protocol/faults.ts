import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { type Reply, sendReply } from './call';

const headers = z.record(z.string(), z.string()).default({});
const ms = z.int().min(0).max(600_000);

const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('as_usual') }),
  /** Sends this answer and not the real answer. */
  z.strictObject({
    kind: z.literal('fixed'),
    status: z.int().min(200).max(599),
    headers,
    body: z.string().default(''),
  }),
  /** Sends the real JSON answer with some values replaced by path, such as `{"action.resources.0.id": 7}`. */
  z.strictObject({ kind: z.literal('edited'), set: z.record(z.string(), z.unknown()) }),
  /** Closes the connection without an answer. */
  z.strictObject({ kind: z.literal('reset') }),
  /** Keeps the connection open without an answer. */
  z.strictObject({ kind: z.literal('silence') }),
  /** Announces the full length, but sends only `bytes` bytes. */
  z.strictObject({ kind: z.literal('truncated'), bytes: z.int().min(0) }),
  /** Sends a body of about `bytes` bytes. If `bytes` is missing, the body has no end. */
  z.strictObject({ kind: z.literal('endless'), bytes: z.int().min(1).optional() }),
  /** Sends the answer, one byte every `intervalMs`. */
  z.strictObject({ kind: z.literal('drip'), intervalMs: ms }),
]);

export const faultOrderSchema = z.strictObject({
  /** The method of the affected calls. By default all methods are affected. */
  method: z.string().optional(),
  /** A regular expression that the path must match, in S3 the path with its query. */
  path: z.string(),
  /** The number of affected calls. */
  times: z.int().min(1).default(1),
  /**
   * True if the call takes effect although its answer is lost or replaced. Otherwise it takes effect only with the
   * answers `as_usual` and `edited`, and in S3 also with `truncated` and `drip`.
   */
  isCarriedOut: z.boolean().default(false),
  delayMs: ms.default(0),
  answer: answerSchema,
});

export type FaultOrder = z.infer<typeof faultOrderSchema>;
export type FaultAnswer = FaultOrder['answer'];
/** A fault as a test writes it. Fields that have a default may be missing. */
export type FaultWish = z.input<typeof faultOrderSchema>;

export interface FaultOrders {
  add(order: FaultOrder): void;
  /** Returns the first fault that matches the call, and lowers its `times` by one. Null if none matches. */
  take(method: string, path: string): FaultOrder | null;
  list(): readonly FaultOrder[];
  clear(): void;
}

export function createFaultOrders(): FaultOrders {
  let orders: FaultOrder[] = [];
  const fits = (order: FaultOrder, method: string, path: string): boolean =>
    (order.method ?? method) === method && new RegExp(order.path).test(path);
  return {
    add: (order) => {
      orders.push(order);
    },
    take: (method, path) => {
      const order = orders.find((candidate) => fits(candidate, method, path));
      if (order === undefined) return null;
      order.times -= 1;
      orders = orders.filter(({ times }) => times > 0);
      return order;
    },
    list: () => orders,
    clear: () => {
      orders = [];
    },
  };
}

/** The status of a faulty answer, or 0 if no answer is sent. `usual` is the status of the call's result. */
export function faultyStatus(usual: number, answer: FaultAnswer): number {
  if (answer.kind === 'fixed') return answer.status;
  if (answer.kind === 'endless') return 200;
  return answer.kind === 'reset' || answer.kind === 'silence' ? 0 : usual;
}

/** Sends a faulty answer. `reply` is the call's result, or an empty 200 if the call was not carried out. */
export async function sendFaulty(response: ServerResponse, reply: Reply, answer: FaultAnswer): Promise<void> {
  switch (answer.kind) {
    case 'as_usual':
      return sendReply(response, reply);
    case 'fixed':
      return sendReply(response, answer);
    case 'edited':
      return sendReply(response, { ...reply, body: editJson(reply.body, answer.set) });
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'silence':
      return;
    case 'truncated':
      return sendTruncated(response, reply, answer.bytes);
    case 'endless':
      return await sendEndless(response, answer.bytes ?? Number.POSITIVE_INFINITY);
    case 'drip':
      return await sendDrip(response, reply, answer.intervalMs);
  }
}

function sendTruncated(response: ServerResponse, { status, headers, body }: Reply, bytes: number): void {
  const whole = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': String(whole.length) });
  response.write(whole.subarray(0, bytes), () => response.socket?.destroy());
}

async function sendEndless(response: ServerResponse, bytes: number): Promise<void> {
  const piece = Buffer.alloc(64 * 1024, 'a');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{"action":"');
  for (let sent = 0; sent < bytes && !response.destroyed; sent += piece.length) {
    if (!response.write(piece)) await drained(response);
    // The pause lets the emulator serve other requests, even if this client reads very fast.
    await wait(bytes === Number.POSITIVE_INFINITY ? 5 : 0);
  }
  response.end('"}');
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });

async function sendDrip(response: ServerResponse, { status, headers, body }: Reply, intervalMs: number): Promise<void> {
  response.writeHead(status, headers);
  for (const byte of Buffer.from(body)) {
    if (response.destroyed) return;
    response.write(Buffer.of(byte));
    await wait(intervalMs);
  }
  response.end();
}

const branch = z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())]);

/**
 * Replaces values in JSON by path (`servers.0.locked`). Missing keys of objects are created. An empty text stays empty.
 */
function editJson(text: string, set: Readonly<Record<string, unknown>>): string {
  if (text === '') return text;
  let value: unknown = JSON.parse(text);
  for (const [path, replacement] of Object.entries(set)) value = withValue(value, path.split('.'), replacement);
  return JSON.stringify(value);
}

function withValue(value: unknown, [key, ...rest]: readonly string[], replacement: unknown): unknown {
  if (key === undefined) return replacement;
  const parsed = branch.safeParse(value);
  const inner = parsed.success ? parsed.data : {};
  if (Array.isArray(inner))
    return inner.map((item, index) => (String(index) === key ? withValue(item, rest, replacement) : item));
  return { ...inner, [key]: withValue(inner[key], rest, replacement) };
}
