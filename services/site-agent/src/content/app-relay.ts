import { Agent, type ClientRequest, type ClientRequestArgs, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { type ChildSays, type Forwarded, type HostSays, pieceBytes } from './protocol';

type Say = (says: ChildSays, body?: Buffer) => void;
type Connected = (error: Error | null, socket?: Socket) => void;
type VisitorsRequest = ClientRequestArgs & { visitor?: number };

/**
 * The most chunks of an answer that are kept separate. More chunks are joined into one, because each chunk costs a
 * hundred bytes of memory.
 */
const chunksMax = 64;

/**
 * Keeps connections to the application open for reuse. Node reuses a connection for requests with the same
 * `socketPath`. Here `socketPath` holds the number of the application's process, so that requests for the same process
 * share connections. The site agent opens each new connection and hands it to the content child.
 */
class HandedConnections extends Agent {
  private readonly connect: (id: number, onConnected: Connected) => void;

  constructor(connect: (id: number, onConnected: Connected) => void) {
    super({ keepAlive: true });
    this.connect = connect;
  }

  override createConnection(
    options: VisitorsRequest,
    onConnected?: (error: Error | null, socket: Socket) => void,
  ): undefined {
    this.connect(options.visitor ?? 0, onConnected as Connected);
  }
}

/**
 * Speaks HTTP to the site's application. The site agent asks for a visitor's answer piece by piece. A piece has all
 * bytes of the answer that have arrived and were not sent yet, at most 64 KiB.
 */
export class AppRelay {
  private readonly say: (id: number, says: ChildSays, body?: Buffer) => void;
  private readonly connections = new HandedConnections((id, onConnected) => this.ask(id, onConnected));
  private readonly connecting = new Map<number, Connected>();
  private readonly visitors = new Map<number, RelayedRequest>();

  constructor(say: (id: number, says: ChildSays, body?: Buffer) => void) {
    this.say = say;
  }

  forward(id: number, forwarded: Forwarded): void {
    const say: Say = (says, body) => this.say(id, says, body);
    const options = { agent: this.connections, visitor: id, socketPath: String(forwarded.process) };
    const { method, url: path, headers, has_body: hasBody } = forwarded;
    const upstream = request({ ...options, method, path, headers: headers as never });
    const visitor = new RelayedRequest(upstream, hasBody, say);
    this.visitors.set(id, visitor);
    upstream.once('close', () => {
      // If the visitor left before the connection was made, the connection is not needed any more.
      this.take(id)?.(new Error('the visitor has gone'));
      if (visitor.isOver) this.visitors.delete(id);
      else visitor.onOver = () => this.visitors.delete(id);
    });
  }

  /** Passes the site agent's message on to its request. Does nothing if the request has ended. */
  hear(id: number, { say }: HostSays, body: Buffer): void {
    if (say === 'no_connection') this.take(id)?.(new Error('the application takes no connection'));
    else this.visitors.get(id)?.hear(say, body);
  }

  /** Takes a connection that the site agent has made. Closes it if no request waits for it any more. */
  give(id: number, socket: Socket): void {
    const onConnected = this.take(id);
    if (onConnected === undefined) socket.destroy();
    else onConnected(null, socket);
  }

  private ask(id: number, onConnected: Connected): void {
    this.connecting.set(id, onConnected);
    this.say(id, { say: 'connect' });
  }

  private take(id: number): Connected | undefined {
    const onConnected = this.connecting.get(id);
    this.connecting.delete(id);
    return onConnected;
  }
}

class RelayedRequest {
  private readonly upstream: ClientRequest;
  private readonly say: Say;
  private answer: IncomingMessage | null = null;
  private isHeadSaid = false;
  private chunks: Buffer[] = [];
  private held = 0;
  private end: 'whole' | 'broken' | null = null;
  private maySay = true;
  private isScheduled = false;
  isOver = false;
  onOver: () => void = () => undefined;

  constructor(upstream: ClientRequest, hasBody: boolean, say: Say) {
    this.upstream = upstream;
    this.say = say;
    upstream.on('error', (error) => this.fail(error));
    upstream.once('response', (answer) => this.take(answer));
    // Node reports an answer that changes the protocol (101) neither as a response nor as an error.
    upstream.once('close', () => {
      if (this.answer === null) this.fail(new Error('the application closed its connection without an answer'));
    });
    if (hasBody) say({ say: 'want' });
    else upstream.end();
  }

  hear(said: Exclude<HostSays['say'], 'no_connection'>, body: Buffer): void {
    switch (said) {
      case 'more':
        this.maySay = true;
        if (this.held > 0 || this.end !== null) this.schedule();
        return;
      case 'body':
        if (this.upstream.destroyed) return;
        if (this.upstream.write(body)) this.say({ say: 'want' });
        else this.upstream.once('drain', () => this.say({ say: 'want' }));
        return;
      case 'body_end':
        this.upstream.end();
        return;
      case 'leave':
        this.finish();
        this.upstream.destroy();
    }
  }

  private take(answer: IncomingMessage): void {
    this.answer = answer;
    answer.on('data', (chunk: Buffer) => {
      this.chunks.push(chunk);
      this.held += chunk.length;
      if (this.chunks.length > chunksMax) this.chunks = [Buffer.concat(this.chunks)];
      if (this.held >= pieceBytes) answer.pause();
      this.schedule();
    });
    answer.once('end', () => this.close('whole'));
    answer.on('error', () => this.close('broken'));
    answer.once('close', () => this.close('broken'));
    this.schedule();
  }

  private close(end: 'whole' | 'broken'): void {
    this.end ??= end;
    this.schedule();
  }

  /**
   * Sends the piece only after this turn of the event loop. So all bytes that are read in the turn are in one piece.
   */
  private schedule(): void {
    if (this.isScheduled || !this.maySay || this.isOver) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.sayPiece();
    });
  }

  private sayPiece(): void {
    const { answer } = this;
    if (answer === null || this.isOver) return;
    const all = this.chunks.length === 1 ? (this.chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.chunks);
    const piece = all.subarray(0, pieceBytes);
    const rest = all.subarray(pieceBytes);
    this.chunks = rest.length === 0 ? [] : [rest];
    this.held = rest.length;
    const end = this.held === 0 ? this.end : null;
    const { statusCode: status = 0, statusMessage: message = '', rawHeaders: headers } = answer;
    this.say({ say: 'answer', head: this.isHeadSaid ? null : { status, message, headers }, end }, piece);
    this.isHeadSaid = true;
    if (end !== null) this.finish();
    else this.maySay = false;
    if (this.held < pieceBytes) answer.resume();
  }

  private fail(error: Error): void {
    if (this.answer !== null) this.close('broken');
    else if (!this.isOver) {
      this.finish();
      this.say({ say: 'failed', reason: error.message });
    }
  }

  private finish(): void {
    this.isOver = true;
    this.onOver();
  }
}
