import { setTimeout as wait } from 'node:timers/promises';
import { timeLimit } from '@drydock/process';
import { BrokenCircuitError, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { Agent, type Dispatcher, request } from 'undici';
import type { z } from 'zod';
import { VendorError } from './vendor-timeline';

/** The longest wait that a Retry-After header of the vendor may cause. */
const retryAfterSecondsMax = 60;
const usualSeconds = 2;

/**
 * The seconds to wait according to a Retry-After header, which has a number of seconds or a date. The result lies
 * between 1 and `retryAfterSecondsMax`. Without a usable header it is `usualSeconds`.
 */
export function retryAfterSecondsOf(header: string | string[] | undefined, nowMs: number = Date.now()): number {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - nowMs) / 1_000;
  return Number.isFinite(seconds) ? Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(seconds))) : usualSeconds;
}

/** The most bytes of an answer that is no listing. A real answer about one package is smaller. */
const answerBytesMax = 1024 * 1024;

/**
 * The most bytes of a listing, which has a row for each package of the account, or for each point of a package's
 * timelines. 32 MiB are about 175,000 packages, or 400,000 points.
 */
export const listingBytesMax = 32 * 1024 * 1024;

interface VendorCall<Answer> {
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
  answer: z.ZodType<Answer>;
  /** The default is `answerBytesMax`. A longer answer is not read to its end. */
  bytesMax?: number;
  /** The milliseconds for the whole answer. The default is `deadlineMs`. */
  withinMs?: number;
  signal?: AbortSignal | undefined;
}

export interface VendorHttp {
  /**
   * Repeats a read at most twice if it fails for a transient reason. Never repeats a change. Rejects with {@link
   * VendorError}, or with another error if the caller's signal is aborted. Never rejects with `not_understood` for a
   * change.
   */
  call<Answer>(call: VendorCall<Answer>): Promise<Answer>;
  /** The HTTP status of a page outside the API; 0 without an answer. */
  probe(url: string, signal?: AbortSignal): Promise<number>;
  close(): Promise<void>;
}

/** The usual time for a whole answer. A call for a long answer sets `withinMs` instead. */
const deadlineMs = { GET: 4_000, POST: 8_000 };
const readsMax = 3;
/**
 * After `failuresMax` failures in a row no call is made for `openMs`. Then one call tests whether the vendor answers
 * again.
 */
const circuit = { failuresMax: 6, openMs: 15_000 };

/** Opens the vendor's HTTP API. Limits the time and the size of every answer, and follows no redirect. */
export function createVendorHttp({ url, key }: { url: string; key: string }): VendorHttp {
  const agent = new Agent({ connections: 16, connect: { timeout: 2_000 } });
  // The circuit is shared by all customers, so an answer about one package must not open it by its size or its shape.
  const isTrouble = (error: unknown): boolean =>
    error instanceof VendorError && (error.fault === 'unavailable' || error.fault === 'unknown');
  const breaker = circuitBreaker(handleWhen(isTrouble), {
    halfOpenAfter: circuit.openMs,
    breaker: new ConsecutiveBreaker(circuit.failuresMax),
  });
  const once = <Answer>(wanted: VendorCall<Answer>): Promise<Answer> =>
    breaker
      .execute(() => exchange(agent, { url, key }, wanted))
      .catch((error: unknown) => {
        throw error instanceof BrokenCircuitError
          ? new VendorError('unavailable', 'the circuit is open', { retryAfterSeconds: laterSeconds })
          : error;
      });
  return {
    call: async (wanted) => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await once(wanted);
        } catch (error) {
          const isLast = wanted.method !== 'GET' || attempt >= readsMax || !mayPass(error);
          if (isLast) throw error;
          await wait(
            100 * 2 ** attempt * (0.5 + Math.random()),
            undefined,
            wanted.signal === undefined ? {} : { signal: wanted.signal },
          );
        }
      }
    },
    probe: async (pageUrl, signal) => {
      try {
        const { statusCode, body } = await request(pageUrl, {
          dispatcher: agent,
          signal: deadline(deadlineMs.GET, signal),
        });
        await body.dump();
        return statusCode;
      } catch {
        signal?.throwIfAborted();
        return 0;
      }
    },
    close: () => agent.close(),
  };
}

/** The seconds to wait after a failure that an immediate call would meet again. */
const laterSeconds = 30;

const mayPass = (error: unknown): boolean =>
  error instanceof VendorError &&
  (error.fault === 'unavailable' || error.fault === 'not_understood') &&
  error.retryAfterSeconds < laterSeconds;

const deadline = (ms: number, signal?: AbortSignal): AbortSignal =>
  AbortSignal.any([timeLimit(ms), ...(signal === undefined ? [] : [signal])]);

/** The fault of an answer that cannot be read. The vendor may have carried out the change all the same. */
const unreadable = { GET: 'not_understood', POST: 'unknown' } as const;

/**
 * Reads a body as text. Rejects if the body is larger than `bytesMax`, so that it can neither fill the memory nor go on
 * for ever.
 */
async function readCapped(method: 'GET' | 'POST', body: AsyncIterable<unknown>, bytesMax: number): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    if (!Buffer.isBuffer(piece)) throw new Error('the body is not made of bytes');
    bytes += piece.length;
    // Leaving the loop destroys the body with its connection.
    if (bytes > bytesMax)
      throw new VendorError(unreadable[method], `the answer is larger than ${bytesMax} bytes`, {
        retryAfterSeconds: laterSeconds,
      });
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

async function exchange<Answer>(
  dispatcher: Dispatcher,
  { url, key }: { url: string; key: string },
  { method, path, body, answer, bytesMax = answerBytesMax, withinMs = deadlineMs[method], signal }: VendorCall<Answer>,
): Promise<Answer> {
  let isSent = false;
  try {
    const response = await request(new URL(path, url), {
      method,
      dispatcher,
      headers: {
        authorization: `Bearer ${key}`,
        accept: 'application/json',
        ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      },
      signal: deadline(withinMs, signal),
      ...(method === 'POST' ? { body: JSON.stringify(body ?? {}) } : {}),
    });
    isSent = true;
    const text = await readCapped(method, response.body, bytesMax);
    return understood(method, response, text, answer);
  } catch (error) {
    if (error instanceof VendorError) throw error;
    signal?.throwIfAborted();
    // Without a connection the vendor has begun nothing. After any other failure the vendor may have got the change.
    const isUnread = method === 'GET' || (!isSent && isConnectFailure(error));
    throw new VendorError(isUnread ? 'unavailable' : 'unknown', `${method} ${path}: ${String(error)}`, {
      cause: error,
    });
  }
}

function understood<Answer>(
  method: 'GET' | 'POST',
  { statusCode, headers }: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>,
  text: string,
  answer: z.ZodType<Answer>,
): Answer {
  const told = `HTTP ${statusCode} ${text.slice(0, 200)}`;
  if (statusCode === 401 || statusCode === 403) throw new VendorError('denied', told);
  if (statusCode === 404) throw new VendorError('not_found', told);
  if (statusCode === 409 || statusCode === 423 || statusCode === 429)
    throw new VendorError('busy', told, {
      retryAfterSeconds: retryAfterSecondsOf(headers['retry-after']),
      isConflict: statusCode === 409,
    });
  if (statusCode >= 400 && statusCode < 500) throw new VendorError('refused', told);
  if (statusCode >= 300) throw new VendorError(method === 'GET' ? 'unavailable' : 'unknown', told);
  const parsed = answer.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  throw new VendorError(unreadable[method], told);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const connectCodes: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const isConnectFailure = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && connectCodes.has(error.code);
