import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { Reply } from './call';
import type { FaultAnswer } from './fault-orders';

const branch = z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())]);

/** Replaces values in JSON by path (`servers.0.locked`). Missing paths are created. An empty text stays empty. */
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

export function sendReply(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, {
    ...headers,
    ...(status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  });
  response.end(status === 204 ? undefined : body);
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
