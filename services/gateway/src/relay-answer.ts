import type { Dispatcher, Pool } from 'undici';
import { type Exchange, headOf } from './exchange';

/** What of a service's answer the client gets to see. Everything else stays inside. */
const relayedHeaders = [
  'content-type',
  'content-length',
  'cache-control',
  'location',
  'retry-after',
  'etag',
  'idempotent-replayed',
  'x-accel-buffering',
] as const;

export type RelayOutcome = 'relayed' | 'token_refused' | 'client_gone';

/** The connection ended before one byte of the answer had come: nothing is known of the request but that it was not answered. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
}

const clientGone = new Error('the client is gone');

export interface Relay {
  pool: Pool;
  options: Dispatcher.DispatchOptions;
  exchange: Exchange;
  closing: AbortSignal;
  /** Its head goes out before its first event, and it ends when the gateway goes. */
  isStream: boolean;
}

/**
 * Sends one request and streams its answer to the client: as fast as the client reads, piece by piece, without looking into it.
 * Resolves once the answer has begun. Rejects with {@link UnansweredError} or undici's timeout when none did; an answer that breaks off later
 * breaks off for the client too. A client that leaves cancels a GET; anything else is let finish, for it may have begun to take effect.
 */
export function relayAnswer({ pool, options, exchange, closing, isStream }: Relay): Promise<RelayOutcome> {
  const { response } = exchange;
  const isRead = options.method === 'GET';
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let ignored = false;
    const leave = (outcome: RelayOutcome): void => {
      ignored = true;
      if (isRead) controller?.abort(clientGone);
      else controller?.resume();
      resolve(outcome);
    };
    const endStream = (): void => {
      leave('relayed');
      response.end();
    };
    exchange.onClientGone = () => leave('client_gone');
    if (response.destroyed) return leave('client_gone');
    if (isStream) {
      closing.addEventListener('abort', endStream, { once: true });
      response.once('close', () => closing.removeEventListener('abort', endStream));
    }
    pool.dispatch(options, {
      onRequestStart: (given) => {
        controller = given;
        if (ignored && isRead) given.abort(clientGone);
      },
      onResponseStart: (_controller, status, headers) => {
        if (status < 200 || ignored) return;
        if (status === 401) return leave('token_refused');
        response.writeHead(status, headOf(exchange, closing.aborted, pickHeaders(headers)));
        if (isStream) response.flushHeaders();
        resolve('relayed');
      },
      onResponseData: (given, chunk) => {
        if (ignored || response.write(chunk)) return;
        given.pause();
        response.once('drain', () => given.resume());
      },
      onResponseEnd: () => {
        if (!ignored) response.end();
      },
      onResponseError: (_controller, error) => {
        if (ignored) return;
        if (response.headersSent) response.destroy();
        else reject(isDeadConnection(error) ? new UnansweredError('connection lost', { cause: error }) : error);
      },
    });
  });
}

function pickHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  const picked: string[] = [];
  for (const name of relayedHeaders) {
    const value = headers[name];
    if (typeof value === 'string') picked.push(name, value);
  }
  return picked;
}

const deadConnectionCodes = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const isDeadConnection = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && deadConnectionCodes.has(error.code);
