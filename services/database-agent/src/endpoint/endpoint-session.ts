import { connect, type Socket } from 'node:net';
import type { Occupant } from './session-places';

/**
 * Milliseconds in which a backend can notice that its client has gone. After that, the host ends the backend and
 * repeats this until it is gone.
 */
const leavingMs = 1_000;
/** Milliseconds that a client has to read the last message before its socket is closed. */
const lastWordsMs = 10_000;

export interface EndpointSessionOptions {
  /** The server's port. */
  port: number;
  /** The client's first bytes, which the server has to receive. */
  first: Buffer;
  /** Ends the backend whose connection comes from this port of the host. */
  endBackend: (port: number) => Promise<void>;
  onAnswer: () => void;
  /** Called when the server's socket has closed, because the backend has then ended too. */
  onOver: () => void;
}

/**
 * A session between a client and a server. It keeps its place until its backend has ended, which may be later than the
 * client's end.
 */
export class EndpointSession implements Occupant {
  readonly origin: string;
  /** Whether a server has accepted the connection. `isAnswered` says whether the server has also sent something. */
  isTaken = false;
  isAnswered = false;
  private readonly client: Socket;
  private readonly upstream: Socket;
  private readonly options: EndpointSessionOptions;
  private ending: NodeJS.Timeout | undefined;

  constructor(client: Socket, options: EndpointSessionOptions) {
    this.client = client;
    this.options = options;
    this.origin = client.remoteAddress ?? '';
    this.upstream = connect({ host: '127.0.0.1', port: options.port, noDelay: true });
    this.upstream.on('error', () => undefined);
    this.upstream.once('connect', () => {
      this.isTaken = true;
    });
    this.upstream.once('data', (answer) => this.passOn(answer));
    this.upstream.once('close', () => {
      clearInterval(this.ending);
      client.off('close', this.leave);
      options.onOver();
    });
    client.once('close', this.leave);
    this.upstream.write(options.first);
  }

  get port(): number | undefined {
    return this.upstream.localPort;
  }

  /** Ends the session. Its backend gets some time to end by itself. */
  end(): void {
    this.client.destroy();
    this.leave();
  }

  /** Closes the connection to the server at once. The client stays connected, and the caller decides about it. */
  abandon(): void {
    this.upstream.destroy();
  }

  /** Closes the client's socket after the last message was sent. */
  finish(): void {
    this.client.destroySoon();
    this.client.setTimeout(lastWordsMs, () => this.client.destroy());
  }

  private passOn(answer: Buffer): void {
    const { client, upstream } = this;
    this.isAnswered = true;
    this.options.onAnswer();
    if (client.destroyed) {
      upstream.resume();
      return;
    }
    client.write(answer);
    client.pipe(upstream);
    upstream.pipe(client);
  }

  /** Postgres notices only when it reads again that the client has gone. Until then it may work on a long statement. */
  private readonly leave = (): void => {
    const { upstream } = this;
    if (this.ending !== undefined || upstream.destroyed) return;
    upstream.unpipe();
    upstream.end();
    upstream.resume();
    this.ending = setInterval(() => {
      if (upstream.localPort !== undefined) void this.options.endBackend(upstream.localPort).catch(() => undefined);
    }, leavingMs);
  };
}
