import { createServer, type Server, type Socket } from 'node:net';
import { scaled } from '@drydock/process/time-out-scale';
import { hearInTurn, type InTurn } from './in-turn';
import { Newcomers } from './newcomers';

/** How long a client may take to say what it wants. */
const greetingMs = 3_000;
/** Clients that have not proved themselves, on one address. */
const newcomersMax = 400;
/** An offer of encryption: a length and a code, nothing else. */
const offerBytes = 8;

/** Decides what to do with a client after the bytes that it has sent so far. The greeting says what it wants, once that is known. */
export type Verdict<Greeting extends object> = 'incomplete' | 'decline_encryption' | 'invalid' | Greeting;

/** An address of a customer's database: it hears each client out, and hands it on, paused, with what it wants. */
export class DatabaseAddress<Greeting extends object> {
  readonly server: Server;
  private readonly judge: (data: Buffer) => Verdict<Greeting>;
  private readonly admit: (client: Socket, greeting: Greeting, settle: () => void) => void;
  private readonly inTurn: InTurn;
  private readonly newcomers = new Newcomers(newcomersMax);
  private readonly sockets = new Set<Socket>();

  /**
   * `judge` is asked when the client has come, and each time that more of its first words has. `admit` calls `settle` once the client has proved itself: until then a newer one may take its
   * place, and after that others count it. Each piece of those words takes a turn.
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

  /** Hears out a client of another listener. It counts as one of this address. */
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
    // From the first byte to the last: one byte a second is no greeting either.
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
      // A client waits for the answer to its offer. Bytes that come before could be a stranger's, and would pass for encrypted ones.
      if (verdict === 'invalid' || verdict === 'decline_encryption') client.destroy();
      else this.admit(client, verdict, settle);
    };
    const stop = hearInTurn(client, this.inTurn, hear);
    hear(data, () => undefined);
  }
}
