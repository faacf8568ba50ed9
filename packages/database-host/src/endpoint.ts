import { connect, createServer, type Server, type Socket } from 'node:net';
import { readFirstPacket, writeFatal } from '@drydock/site-host/startup-packet';

const greetingMs = 10_000;
const socketsMax = 500;
const sslRequestCode = 80_877_103;
/** First byte of a TLS handshake that begins without asking (`sslnegotiation=direct`). */
const tlsHandshake = 0x16;

const retryMs = 25;

/** What a client said first, in the clear. */
interface Greeting {
  first: Buffer;
  isCancel: boolean;
  /** On the process' clock: how long it may wait for a server. */
  untilMs: number;
}

export interface EndpointOptions {
  /** Where the instance that serves listens; asked at the moment a session goes through. */
  target: () => number;
  /** How long a new session waits while the endpoint holds, in milliseconds. */
  holdMs: number;
}

/**
 * The one address of a database. It passes bytes on and knows nothing of them but that they are encrypted: TLS and passwords end at Postgres itself. While it holds, new
 * sessions wait, and go on to whichever instance serves by then.
 */
export class Endpoint {
  readonly server: Server;
  private readonly options: EndpointOptions;
  private readonly sockets = new Set<Socket>();
  private readonly sessions = new Set<Socket>();
  private readonly waiting = new Map<Socket, () => void>();
  private isHolding = true;

  constructor(options: EndpointOptions) {
    this.options = options;
    this.server = createServer({ noDelay: true }, (client) => this.greet(client));
    this.server.maxConnections = socketsMax;
  }

  /** New sessions wait from now on; those that are open go on. */
  hold(): void {
    this.isHolding = true;
  }

  /** Those that wait, and all that come, go to the instance that serves. */
  release(): void {
    this.isHolding = false;
    for (const goOn of [...this.waiting.values()]) goOn();
  }

  /** Ends every session that has been given an instance; those that wait are kept. */
  endSessions(): void {
    for (const client of this.sessions) client.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private greet(client: Socket): void {
    this.sockets.add(client);
    client.on('error', () => client.destroy());
    client.on('close', () => {
      this.sockets.delete(client);
      this.sessions.delete(client);
      this.waiting.delete(client);
    });
    client.setTimeout(greetingMs, () => client.destroy());
    let data: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      data = Buffer.concat([data, chunk]);
      const verdict = judgeGreeting(data);
      if (verdict === 'incomplete') return;
      if (verdict === 'no_gss') {
        data = Buffer.alloc(0);
        client.write('N');
        return;
      }
      client.off('data', onData);
      client.pause();
      client.setTimeout(0);
      if (verdict === 'pass' || verdict === 'cancel')
        this.admit(client, { first: data, isCancel: verdict === 'cancel', untilMs: performance.now() + this.options.holdMs });
      else if (verdict === 'plain') client.end(writeFatal('28000', 'this database is reached by TLS only (sslmode=require or stricter)'));
      else client.destroy();
    };
    client.on('data', onData);
  }

  private admit(client: Socket, greeting: Greeting): void {
    if (client.destroyed) return;
    const leftMs = greeting.untilMs - performance.now();
    if (leftMs <= 0) {
      client.end(writeFatal('57P03', 'the database is being moved to another version or restarted; try again in a moment'));
      return;
    }
    if (!this.isHolding) {
      this.join(client, greeting);
      return;
    }
    const goOn = (): void => {
      clearTimeout(late);
      this.waiting.delete(client);
      this.admit(client, greeting);
    };
    const late = setTimeout(goOn, leftMs);
    client.once('close', () => clearTimeout(late));
    this.waiting.set(client, goOn);
  }

  private join(client: Socket, greeting: Greeting): void {
    // Before anything is awaited: a cutover from now on must find this session.
    this.sessions.add(client);
    const upstream = connect({ host: '127.0.0.1', port: this.options.target(), noDelay: true });
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    // Until the server has answered, nothing is lost by greeting another one: this one may just have been killed.
    const again = (): void => {
      upstream.removeAllListeners().on('error', () => undefined);
      upstream.destroy();
      this.sessions.delete(client);
      client.off('close', end);
      setTimeout(() => this.admit(client, greeting), retryMs);
    };
    upstream.on('error', greeting.isCancel ? end : () => undefined);
    upstream.once('close', greeting.isCancel ? end : again);
    client.on('close', end);
    upstream.once('data', (answer) => {
      upstream.off('close', again);
      upstream.on('error', end).on('close', end);
      client.write(answer);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    upstream.write(greeting.first);
  }
}

/** Cancels are never encrypted by most clients and carry no secret but their own key; everything else must ask for TLS first. */
function judgeGreeting(data: Buffer): 'incomplete' | 'no_gss' | 'plain' | 'pass' | 'cancel' | 'invalid' {
  if (data[0] === tlsHandshake) return 'pass';
  const { kind } = readFirstPacket(data);
  if (kind === 'encryption') return data.readUInt32BE(4) === sslRequestCode ? 'pass' : data.length === 8 ? 'no_gss' : 'invalid';
  if (kind === 'startup') return 'plain';
  return kind;
}
