import { connect, createServer, type Server, type Socket } from 'node:net';
import { readFirstPacket, writeFatal } from '@drydock/site-host/startup-packet';

const greetingMs = 10_000;
const socketsMax = 500;
const sslRequestCode = 80_877_103;
/** First byte of a TLS handshake that begins without asking (`sslnegotiation=direct`). */
const tlsHandshake = 0x16;

const retryMs = 25;
/** A server that is killed hangs up once or twice; one that does so for ever does not like what it is told. */
const hangUpsMax = 3;

/** What a client said first, in the clear. */
interface Greeting {
  first: Buffer;
  isCancel: boolean;
  /** On the process' clock: how long it may wait for a server. */
  untilMs: number;
  /** How often a server has taken it and hung up without a word. */
  hangUps: number;
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
  /** By client: how to end what is going on with a server. */
  private readonly sessions = new Map<Socket, () => void>();
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

  /** Ends every session that a server has answered; those that wait, or have only greeted one, are kept for the next. */
  endSessions(): void {
    for (const end of [...this.sessions.values()]) end();
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
        this.admit(client, { first: data, isCancel: verdict === 'cancel', untilMs: performance.now() + this.options.holdMs, hangUps: 0 });
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
    const upstream = connect({ host: '127.0.0.1', port: this.options.target(), noDelay: true });
    let isTaken = false;
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
      const hangUps = greeting.hangUps + (isTaken ? 1 : 0);
      if (hangUps > hangUpsMax) client.destroy();
      else setTimeout(() => this.admit(client, { ...greeting, hangUps }), retryMs);
    };
    // Before anything is awaited: a cutover from now on must find this session.
    this.sessions.set(client, greeting.isCancel ? end : again);
    upstream.on('error', greeting.isCancel ? end : () => undefined);
    upstream.once('close', greeting.isCancel ? end : again);
    client.on('close', end);
    upstream.once('data', (answer) => {
      upstream.off('close', again);
      this.sessions.set(client, end);
      upstream.on('error', end).on('close', end);
      client.write(answer);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    upstream.once('connect', () => {
      isTaken = true;
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
