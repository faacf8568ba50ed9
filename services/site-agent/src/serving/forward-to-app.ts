import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AppProcess } from '../apps/app-process';
import { AppDown, type AppRunner, type RestartWish } from '../apps/site-app';
import type { AppVisitor } from '../content/content';
import { ContentError, type Talk, type Told } from '../content/content-child';
import { type ChildSays, childSaysSchema, type Forwarded, isSaid } from '../content/protocol';
import { generationHeader } from './probe-site';

/**
 * Headers that are not passed on: those of one hop only (RFC 9110, 7.6.1), the probe's header, whose secret an
 * application must not learn, and `X-Forwarded-For`, which a visitor could forge.
 */
const notForwarded = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-drydock-probe',
  'x-forwarded-for',
]);

/** How long a visitor may do nothing, in milliseconds. */
export interface VisitorLimits {
  /**
   * The time after which a visitor who takes no bytes is dropped. A page, or a piece of a file or of an answer, stays
   * in the agent's memory until the visitor has received it.
   */
  untakenMs: number;
  /**
   * The time after which a request ends if nothing more of its body has come. Time in which the application does not
   * read the body does not count.
   */
  unsentMs: number;
}

export const visitorLimits: VisitorLimits = { untakenMs: 30_000, unsentMs: 30_000 };

/** Nothing more of a request's body has come for {@link VisitorLimits.unsentMs}. */
export class BodyStalled extends Error {
  override readonly name = 'BodyStalled';
}

/** Leaves out the headers in `notForwarded`. The list holds names and values, alternating. */
function withoutHops(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2);
    if (!notForwarded.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

/** Tells a probe which process answers now, by a header. Starts the process if needed. Throws {@link AppDown}. */
export async function announceGeneration(response: ServerResponse, app: AppRunner, wish: RestartWish): Promise<void> {
  response.setHeader(generationHeader, String((await app.take(wish)).generation));
}

/**
 * A visitor whom the application may answer. The answer comes in pieces from the child that has the site's files. Each
 * piece is written to the visitor before the child may send the next piece.
 */
export class AppVisit implements AppVisitor {
  readonly forwarded: Forwarded;
  readonly refusal: Promise<Told | null>;
  readonly over: Promise<void>;
  private readonly incoming: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly process: AppProcess;
  private readonly limits: VisitorLimits;
  private readonly refuse: { resolve(told: Told | null): void; reject(error: Error): void };
  private readonly finish: { resolve(): void; reject(error: Error): void };
  private talk: Talk | null = null;
  private inTurn: (go: () => void) => void = (go) => go();
  private mayHear = true;
  private isAnswered = false;
  private isSending = false;
  private wanted = 0;
  private received = 0;
  private onWanted: () => void = () => undefined;

  constructor(incoming: IncomingMessage, response: ServerResponse, process: AppProcess, limits: VisitorLimits) {
    this.incoming = incoming;
    this.response = response;
    this.process = process;
    this.limits = limits;
    response.on('timeout', () => response.destroy());
    const { method = 'GET', url = '/', headers, rawHeaders, socket } = incoming;
    const isChunked = headers['transfer-encoding'] !== undefined;
    this.forwarded = {
      process: process.generation,
      method,
      url,
      // A body of unknown length must be chunked on the way to the application too, whatever the method.
      headers: [
        ...withoutHops(rawHeaders),
        'X-Forwarded-For',
        socket.remoteAddress ?? '',
        ...(isChunked ? ['Transfer-Encoding', 'chunked'] : []),
      ],
      has_body: isChunked || Number(headers['content-length'] ?? 0) > 0,
    };
    [this.refusal, this.refuse] = deferred<Told | null>();
    [this.over, this.finish] = deferred<void>();
  }

  begin(talk: Talk, inTurn: (go: () => void) => void): void {
    this.talk = talk;
    this.inTurn = inTurn;
    if (this.response.destroyed) this.leave();
    else this.response.once('close', this.leave);
  }

  hear(told: Told): void {
    if (!isSaid(told.value)) {
      this.response.off('close', this.leave);
      this.talk?.leave();
      this.refuse.resolve(told);
      return;
    }
    this.refuse.resolve(null);
    const says = childSaysSchema.parse(told.value);
    switch (says.say) {
      case 'answer':
        this.passOn(says, told.body);
        return;
      case 'want':
        this.want();
        return;
      case 'connect':
        void this.connect();
        return;
      case 'failed':
        this.fail(new AppDown('the application did not answer', { cause: new Error(says.reason) }));
    }
  }

  lose(error: Error): void {
    this.refuse.reject(error);
    this.finish.reject(error);
  }

  private passOn({ head, end }: Extract<ChildSays, { say: 'answer' }>, body: Buffer): void {
    const { response } = this;
    if (!this.mayHear) throw new ContentError('a piece of an answer came before it was asked for');
    if (head !== null && !this.passHead(head)) return;
    if (end === 'whole') {
      this.isAnswered = true;
      response.setTimeout(this.limits.untakenMs);
      // Node would keep this limit for the next request of the connection.
      response.prependOnceListener('finish', () => response.setTimeout(0));
      response.end(body);
    } else if (end === 'broken') this.fail(new Error('the application broke its answer off'));
    else {
      this.mayHear = false;
      const go = (): void => this.inTurn(() => this.more());
      if (body.length === 0) response.flushHeaders();
      if (body.length === 0 || response.write(body)) go();
      else {
        // A visitor who takes nothing would keep its place for ever, so it has limited time to take this piece. The
        // limit ends with the piece, because the application may be slow with the next one.
        response.setTimeout(this.limits.untakenMs);
        response.once('drain', () => {
          response.setTimeout(0);
          go();
        });
      }
    }
  }

  private more(): void {
    this.mayHear = true;
    this.talk?.say({ say: 'more' });
  }

  /**
   * Sends the head of an answer. Node can read some answers that it cannot write, for example with the status 000. No
   * part of such an answer is sent.
   */
  private passHead({ status, message, headers }: { status: number; message: string; headers: string[] }): boolean {
    const { response } = this;
    const pairs = pairsOf(withoutHops(headers));
    try {
      for (const [name, value] of pairs) response.appendHeader(name, value);
      response.writeHead(status, message);
      return true;
    } catch (error) {
      for (const [name] of pairs) response.removeHeader(name);
      this.fail(new AppDown('the application answered what is no HTTP', { cause: error }));
      return false;
    }
  }

  private async connect(): Promise<void> {
    try {
      const connection = await this.process.connect();
      if (this.talk === null) connection.destroy();
      else this.talk.hand(connection);
    } catch {
      this.talk?.say({ say: 'no_connection' });
    }
  }

  private want(): void {
    this.wanted += 1;
    this.onWanted();
    if (this.isSending) return;
    this.isSending = true;
    void this.sendBody();
  }

  /** Sends a piece of the request's body each time the child asks for one. */
  private async sendBody(): Promise<void> {
    const { incoming, response } = this;
    response.once('close', () => {
      if (!incoming.complete) incoming.destroy();
    });
    let limit = this.limitPause();
    try {
      for await (const piece of incoming as AsyncIterable<Buffer>) {
        clearTimeout(limit);
        this.received += 1;
        if (this.wanted === 0) await new Promise<void>((resolve) => (this.onWanted = resolve));
        this.wanted -= 1;
        this.talk?.say({ say: 'body' }, piece);
        limit = this.limitPause();
      }
      this.talk?.say({ say: 'body_end' });
    } catch {
      this.leave(); // A request's body that breaks off ends the request.
    } finally {
      clearTimeout(limit);
    }
  }

  /** Ends the visit if nothing more of the request's body comes within the limit. */
  private limitPause(): NodeJS.Timeout {
    const { received } = this;
    const check = (): void => {
      if (this.received === received && !this.incoming.complete) this.fail(new BodyStalled('a body did not go on'));
    };
    // A busy process reads late, so it reads once more before it decides.
    return setTimeout(() => setImmediate(check), this.limits.unsentMs);
  }

  private readonly leave = (): void => {
    this.end();
    this.finish.resolve();
  };

  private fail(error: Error): void {
    this.end();
    this.finish.reject(error);
  }

  private end(): void {
    const { talk } = this;
    if (talk === null) return;
    this.talk = null;
    // After a whole answer to a whole request the child knows that the visit is over, so it needs no `leave`.
    if (!this.isAnswered || !this.incoming.complete) talk.say({ say: 'leave' });
    talk.leave();
    this.refuse.resolve(null);
  }
}

const pairsOf = (raw: readonly string[]): [string, string][] =>
  raw.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, raw[at + 1] ?? '']] : []));

/** Makes a promise that may reject even if nobody awaits it. */
function deferred<T>(): [Promise<T>, { resolve(value: T): void; reject(error: Error): void }] {
  let handle: { resolve(value: T): void; reject(error: Error): void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    handle = { resolve, reject };
  });
  promise.catch(() => undefined);
  if (handle === undefined) throw new Error('a promise calls its executor at once');
  return [promise, handle];
}
