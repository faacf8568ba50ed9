import { connect, type Server, type Socket } from 'node:net';
import { PostgresAddress, type Verdict } from '@drydock/agent/host/postgres-address';
import { readFirstPacket, writeFatal } from '@drydock/agent/host/startup-packet';

/** First byte of a TLS handshake that begins without asking (`sslnegotiation=direct`). */
const tlsHandshake = 0x16;

const retryMs = 25;
/** A server that is killed hangs up once or twice; one that does so for ever does not like what it is told. */
const hangUpsMax = 3;

/** What a client said first, in the clear. */
interface Greeting {
  kind: 'session' | 'cancel' | 'plain';
  first: Buffer;
}

/** A client on its way to a server. */
interface Passage {
  first: Buffer;
  /** To be called once a server has answered: from then on its own places count. */
  settle: () => void;
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
  private readonly options: EndpointOptions;
  private readonly address: PostgresAddress<Greeting>;
  /** By client: how to end what is going on with a server. */
  private readonly sessions = new Map<Socket, () => void>();
  private readonly waiting = new Map<Socket, () => void>();
  private isHolding = true;

  constructor(options: EndpointOptions) {
    this.options = options;
    this.address = new PostgresAddress(judgeGreeting, (client, greeting, settle) => this.receive(client, greeting, settle));
  }

  get server(): Server {
    return this.address.server;
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

  close(): Promise<void> {
    return this.address.close();
  }

  private receive(client: Socket, { kind, first }: Greeting, settle: () => void): void {
    if (kind === 'plain') {
      client.end(writeFatal('28000', 'this database is reached by TLS only (sslmode=require or stricter)'));
      return;
    }
    client.once('close', () => {
      this.sessions.delete(client);
      this.waiting.delete(client);
    });
    this.admit(client, { first, settle, isCancel: kind === 'cancel', untilMs: performance.now() + this.options.holdMs, hangUps: 0 });
  }

  private admit(client: Socket, passage: Passage): void {
    if (client.destroyed) return;
    const leftMs = passage.untilMs - performance.now();
    if (leftMs <= 0) {
      client.end(writeFatal('57P03', 'the database is being moved to another version or restarted; try again in a moment'));
      return;
    }
    if (!this.isHolding) {
      this.join(client, passage);
      return;
    }
    const goOn = (): void => {
      clearTimeout(late);
      this.waiting.delete(client);
      this.admit(client, passage);
    };
    const late = setTimeout(goOn, leftMs);
    client.once('close', () => clearTimeout(late));
    this.waiting.set(client, goOn);
  }

  private join(client: Socket, passage: Passage): void {
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
      const hangUps = passage.hangUps + (isTaken ? 1 : 0);
      if (hangUps > hangUpsMax) client.destroy();
      else setTimeout(() => this.admit(client, { ...passage, hangUps }), retryMs);
    };
    // Before anything is awaited: a cutover from now on must find this session.
    this.sessions.set(client, passage.isCancel ? end : again);
    upstream.on('error', passage.isCancel ? end : () => undefined);
    upstream.once('close', passage.isCancel ? end : again);
    client.on('close', end);
    upstream.once('data', (answer) => {
      upstream.off('close', again);
      passage.settle();
      this.sessions.set(client, end);
      upstream.on('error', end).on('close', end);
      client.write(answer);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    upstream.once('connect', () => {
      isTaken = true;
    });
    upstream.write(passage.first);
  }
}

/** Cancels are never encrypted by most clients and carry no secret but their own key; everything else must ask for TLS first. */
function judgeGreeting(first: Buffer): Verdict<Greeting> {
  if (first[0] === tlsHandshake) return { kind: 'session', first };
  const said = readFirstPacket(first);
  if (said.kind === 'encryption') return said.by === 'tls' ? { kind: 'session', first } : 'decline_encryption';
  if (said.kind === 'startup') return { kind: 'plain', first };
  return said.kind === 'cancel' ? { kind: 'cancel', first } : said.kind;
}
