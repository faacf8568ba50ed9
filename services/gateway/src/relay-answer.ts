import { keyChallenge } from '@drydock/service/http';
import type { Dispatcher, Pool } from 'undici';
import { type Exchange, headOf } from './exchange';
import { type Replica, UnansweredError } from './replicas';

/** Headers of a service's answer that are passed on to the client. All others stay inside. */
const relayedHeaders = [
  'content-type',
  'content-length',
  'cache-control',
  'location',
  'retry-after',
  'x-workflow-id',
  'etag',
  'idempotent-replayed',
  'x-accel-buffering',
] as const;

/**
 * `key_refused`: the caller's key was revoked since we asked. `token_refused`: our own token. Neither answer was passed
 * on.
 */
export type RelayOutcome = 'relayed' | 'key_refused' | 'token_refused' | 'client_gone';

const clientGone = new Error('the client is gone');

export interface Relay {
  replica: Replica;
  options: Dispatcher.DispatchOptions;
  exchange: Exchange;
  closing: AbortSignal;
  /** Aborted when the gateway has drained. */
  drained: AbortSignal;
  /**
   * Whether the answer is an event stream. Then its head is sent before its first event, and it ends when the gateway
   * stops.
   */
  isStream: boolean;
}

/**
 * Sends one request and streams its answer to the client, as fast as the client reads, without looking into it.
 * Resolves once the answer has begun. Rejects with {@link UnansweredError} or undici's timeout if none did; an answer
 * that breaks off later breaks off for the client too. If the client leaves, a GET is cancelled; any other call is
 * completed, because it may have begun to take effect.
 */
export const relayAnswer = (relay: Relay): Promise<RelayOutcome> =>
  new Promise((resolve, reject) => {
    const { options, exchange } = relay;
    const answer = new RelayedAnswer(relay, resolve, reject);
    exchange.onClientGone = () => answer.leave('client_gone');
    if (exchange.response.destroyed) return answer.leave('client_gone');
    if (relay.isStream) endWithGateway(relay, answer);
    answer.pool.dispatch(options, answer);
  });

function endWithGateway({ closing, drained, exchange: { response } }: Relay, answer: RelayedAnswer): void {
  // A stream that is opened while the gateway drains lasts until the drain ends.
  const end = closing.aborted ? drained : closing;
  const endStream = (): void => {
    answer.leave('relayed');
    response.end();
  };
  end.addEventListener('abort', endStream, { once: true });
  response.once('close', () => end.removeEventListener('abort', endStream));
}

/** Handles undici's events for one answer. A class without closures, because there is one for every request. */
class RelayedAnswer implements Dispatcher.DispatchHandler {
  readonly pool: Pool;
  private readonly relay: Relay;
  private readonly resolve: (outcome: RelayOutcome) => void;
  private readonly reject: (error: Error) => void;
  private controller: Dispatcher.DispatchController | undefined;
  private ignored = false;
  private sent = false;
  private begun = false;
  /** The body of a small answer so far, one character for each byte. */
  private held: string | undefined;

  constructor(relay: Relay, resolve: (outcome: RelayOutcome) => void, reject: (error: Error) => void) {
    this.pool = relay.replica.pool;
    this.relay = relay;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Ignores the rest of the answer, for which nobody waits. */
  leave(outcome: RelayOutcome): void {
    this.ignored = true;
    if (this.relay.options.method === 'GET') this.controller?.abort(clientGone);
    else this.controller?.resume();
    this.resolve(outcome);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.sent = true;
    if (this.ignored && this.relay.options.method === 'GET') controller.abort(clientGone);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    if (status >= 200 && headers['connection'] === 'close') this.relay.replica.leave(this.pool);
    if (status < 200 || this.ignored) return;
    if (status === 401) {
      this.leave(headers['www-authenticate'] === keyChallenge ? 'key_refused' : 'token_refused');
      return;
    }
    const { exchange, closing, isStream } = this.relay;
    this.begun = true;
    exchange.response.writeHead(status, headOf(exchange, closing.aborted, pickHeaders(headers)));
    if (isStream) exchange.response.flushHeaders();
    else if (isSmall(headers['content-length'])) this.held = '';
    this.resolve('relayed');
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.ignored) return;
    const { response } = this.relay.exchange;
    if (this.held !== undefined) this.held += chunk.toString('latin1');
    else if (!response.write(chunk)) {
      controller.pause();
      response.once('drain', () => controller.resume());
    }
  }

  onResponseEnd(): void {
    if (this.ignored) return;
    const { response } = this.relay.exchange;
    if (this.held === undefined) response.end();
    else response.end(this.held, 'latin1');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.ignored) return;
    if (this.begun) this.breakOff();
    else this.reject(!this.sent || isDeadConnection(error) ? new UnansweredError(this.sent, error) : error);
  }

  /** Passes on the received part of an answer that broke off, and ends the connection. */
  private breakOff(): void {
    const { response } = this.relay.exchange;
    response.flushHeaders();
    if (this.held !== undefined && this.held !== '') response.write(this.held, 'latin1', () => response.destroy());
    else response.destroy();
  }
}

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * A body up to this size is collected: head and body as one string are one plain write, while Node allocates memory
 * each time for two pieces.
 */
const heldBytesMax = 12_288;

const isSmall = (length: string | string[] | undefined): boolean =>
  typeof length === 'string' && Number(length) <= heldBytesMax;

function pickHeaders(headers: AnswerHeaders): string[] {
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
