import { createServer, type Server, type Socket } from 'node:net';
import { scaled } from '@drydock/process';
import { hearInTurn, type InTurn } from './in-turn';

const greetingMs = 3_000;
/** The number of places for {@link Newcomers} at one database address. */
const newcomersMax = 400;
/** The bytes of a client's request for encryption, which is only a length and a code. */
const offerBytes = 8;

/**
 * The decision about a client after the bytes that it has sent so far. Once the greeting is complete, the decision is
 * the greeting itself.
 */
export type Verdict<Greeting extends object> = 'incomplete' | 'decline_encryption' | 'invalid' | Greeting;

/**
 * An address of a customer's database. Reads each client's greeting, and passes the paused client and its greeting to
 * `admit`.
 */
export class DatabaseAddress<Greeting extends object> {
  readonly server: Server;
  private readonly judge: (data: Buffer) => Verdict<Greeting>;
  private readonly admit: (client: Socket, greeting: Greeting, settle: () => void) => void;
  private readonly inTurn: InTurn;
  private readonly newcomers = new Newcomers(newcomersMax);
  private readonly sockets = new Set<Socket>();

  /**
   * `judge` is called when a client has connected, and again each time more of its first bytes have arrived. `admit`
   * calls `settle` once the client is no newcomer any more; see {@link Newcomers}. `inTurn` decides when the next piece
   * of the first bytes is read.
   */
  constructor(
    judge: (data: Buffer) => Verdict<Greeting>,
    admit: (client: Socket, greeting: Greeting, settle: () => void) => void,
    inTurn: InTurn = (go) => go(),
  ) {
    this.judge = judge;
    this.admit = admit;
    this.inTurn = inTurn;
    this.server = createServer({ noDelay: true }, (client) => this.greet(client));
  }

  /** Reads the greeting of a client that another listener accepted. The client counts as a client of this address. */
  accept(client: Socket): void {
    this.greet(client.setNoDelay(true));
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private greet(client: Socket): void {
    this.sockets.add(client);
    client.on('error', () => client.destroy());
    const settle = this.newcomers.add(client.remoteAddress ?? '', () => client.destroy());
    client.on('close', () => {
      settle();
      this.sockets.delete(client);
    });
    // The time limit is for the whole greeting, so a client that sends one byte a second is ended too.
    const late = setTimeout(() => client.destroy(), scaled(greetingMs));
    client.on('close', () => clearTimeout(late));
    let data: Buffer = Buffer.alloc(0);
    const hear = (chunk: Buffer, next: () => void): void => {
      data = Buffer.concat([data, chunk]);
      const verdict = this.judge(data);
      if (verdict === 'incomplete') {
        next();
        return;
      }
      if (verdict === 'decline_encryption' && data.length === offerBytes) {
        data = Buffer.alloc(0);
        client.write('N');
        next();
        return;
      }
      stop();
      clearTimeout(late);
      // A client waits for the answer to its request for encryption. Bytes that come before the answer may be an
      // attacker's, so they end the connection.
      if (verdict === 'invalid' || verdict === 'decline_encryption') client.destroy();
      else this.admit(client, verdict, settle);
    };
    const stop = hearInTurn(client, this.inTurn, hear);
    hear(data, () => undefined);
  }
}

/**
 * Places for clients that have just connected. A new client always gets a place. If all places are taken, the origin
 * (IP address) with the most newcomers loses its oldest newcomer. So silent connections cannot keep other clients out.
 */
export class Newcomers {
  private readonly max: number;
  /** The functions that end the clients of each origin, the oldest first. */
  private readonly here = new Map<string, Set<() => void>>();
  private size = 0;

  constructor(max: number) {
    this.max = max;
  }

  /**
   * Takes a place. The returned function gives the place back. It must be called at the latest when the client has
   * gone. `end` is called if another client needs the place.
   */
  add(origin: string, end: () => void): () => void {
    if (this.size >= this.max) this.endOldest();
    const newcomers = this.here.get(origin) ?? new Set();
    newcomers.add(end);
    this.here.set(origin, newcomers);
    this.size += 1;
    return () => this.remove(origin, end);
  }

  private endOldest(): void {
    let most: { origin: string; newcomers: Set<() => void> } | null = null;
    for (const [origin, newcomers] of this.here) {
      if (most === null || newcomers.size > most.newcomers.size) most = { origin, newcomers };
    }
    const [oldest] = most?.newcomers ?? [];
    if (most === null || oldest === undefined) return;
    this.remove(most.origin, oldest);
    oldest();
  }

  /** Gives the place back. Does nothing if the place was given back before, or if another client has it now. */
  private remove(origin: string, end: () => void): void {
    const newcomers = this.here.get(origin);
    if (newcomers?.delete(end) !== true) return;
    this.size -= 1;
    if (newcomers.size === 0) this.here.delete(origin);
  }
}
