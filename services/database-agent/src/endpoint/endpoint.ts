import { connect, type Server, type Socket } from 'node:net';
import { DatabaseAddress } from '@drydock/agent/host';
import { scaled } from '@drydock/process';
import { type Occupant, SessionPlaces } from './session-places';
import type { Greeting, Wire } from './wire';

const retryMs = 25;
/**
 * The most times that servers may hang up on a client without a message. A killed server hangs up once or twice. A
 * server that hangs up more often refuses the client's greeting.
 */
const hangUpsMax = 3;
/**
 * Milliseconds that a session gets to log in before it may lose its place to a waiting client. {@link SessionPlaces}
 * tells when it may lose its place earlier. A login takes about five round trips, so the time suffices for round trips
 * of 200 ms.
 */
const loginMs = 1_000;

/** A client that has no server yet. */
interface Passage {
  first: Buffer;
  /** Must be called once a server has answered. Until then the client may lose its connection to a newer client. */
  settle: () => void;
  isCancel: boolean;
  /** The time on the monotonic clock at which the client stops waiting for a server. */
  untilMs: number;
  /** The number of times that a server has accepted the connection and hung up without a message. */
  hangUps: number;
}

export interface EndpointOptions {
  wire: Wire;
  /** The port of the serving instance; read when a session is connected. */
  target: () => number;
  /** The longest that a new session waits for a serving instance, in milliseconds. */
  holdMs: number;
  /** The number of sessions that the serving instance has places for. */
  places: () => number;
  /**
   * The ports of this machine from which the logged-in sessions reach the server. The endpoint cannot read TLS, so only
   * the server can tell who has logged in.
   */
  readKnownPorts: () => Promise<ReadonlySet<number>>;
  /** Ends the backend of the session that reaches the server from this port. */
  endBackend: (port: number) => Promise<void>;
  /** Whether the database gets no sessions, because it takes more than 1.2 times the storage of its size. */
  isDiskFull: () => boolean;
}

/**
 * The address of a database. After a client's greeting it passes bytes on without reading them, because the engine
 * handles TLS and passwords. After `hold`, new sessions wait. `release` connects them to the instance that serves at
 * that time.
 */
export class Endpoint {
  private readonly options: EndpointOptions;
  private readonly address: DatabaseAddress<Greeting>;
  private readonly sessions = new Set<EndpointSession>();
  private readonly places: SessionPlaces;
  private readonly waiting = new Map<Socket, () => void>();
  private isHolding = true;
  private begun = 0;

  constructor(options: EndpointOptions) {
    this.options = options;
    const { places, readKnownPorts, wire } = options;
    this.places = new SessionPlaces({ places, readKnownPorts, graceMs: scaled(loginMs) });
    this.address = new DatabaseAddress(wire.judge, (client, greeting, settle) =>
      this.receive(client, greeting, settle),
    );
  }

  get server(): Server {
    return this.address.server;
  }

  /** The number of sessions that have begun since the start of the agent. */
  get sessionsBegun(): number {
    return this.begun;
  }

  get isInUse(): boolean {
    return this.sessions.size > 0;
  }

  /** Makes new sessions wait. Open sessions continue. */
  hold(): void {
    this.isHolding = true;
  }

  /** Connects the waiting sessions, and all later ones, to the serving instance. */
  release(): void {
    this.isHolding = false;
    for (const goOn of [...this.waiting.values()]) goOn();
  }

  /**
   * Ends the sessions that have not logged in. Must be called after `hold`. In Postgres no SQL ends these sessions, and
   * locking customers out would wait for them. A client that no server has answered stays connected and waits for the
   * next server.
   */
  async endStrangers(): Promise<void> {
    const answered = [...this.sessions].filter(({ isAnswered }) => isAnswered);
    for (const session of this.sessions) if (!session.isAnswered) session.abandon();
    // If the server does not answer, it ends these sessions itself when their time to log in is over.
    const known = await this.options.readKnownPorts().catch(() => null);
    if (known === null) return;
    for (const session of answered) if (!known.has(session.port ?? 0)) session.end();
  }

  /**
   * Ends every session that a server has answered. Clients that wait, or whose greeting no server has answered, are
   * kept for the next server.
   */
  endSessions(): void {
    for (const session of [...this.sessions]) {
      if (session.isAnswered) session.end();
      session.abandon();
    }
  }

  close(): Promise<void> {
    return this.address.close();
  }

  private receive(client: Socket, { kind, first }: Greeting, settle: () => void): void {
    if (kind === 'plain') {
      client.end(this.options.wire.plain);
      return;
    }
    if (kind === 'session' && this.options.isDiskFull()) {
      client.end(this.options.wire.diskFull);
      return;
    }
    client.once('close', () => {
      this.waiting.delete(client);
      this.places.forget(client);
    });
    this.admit(client, {
      first,
      settle,
      isCancel: kind === 'cancel',
      untilMs: performance.now() + this.options.holdMs,
      hangUps: 0,
    });
  }

  private admit(client: Socket, passage: Passage): void {
    if (client.destroyed) return;
    const leftMs = passage.untilMs - performance.now();
    if (leftMs <= 0) {
      client.end(this.options.wire.late);
      return;
    }
    if (!this.isHolding) {
      this.enter(client, passage);
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

  /** A cancel request takes no place, because the server hangs up as soon as it has accepted the request. */
  private enter(client: Socket, passage: Passage): void {
    if (passage.isCancel) {
      this.join(client, passage);
      return;
    }
    const enter = (): void => {
      if (this.isHolding) this.admit(client, passage);
      else if (!client.destroyed) this.join(client, passage);
    };
    this.places.wait(client, { origin: client.remoteAddress ?? '', enter });
  }

  private join(client: Socket, passage: Passage): void {
    const session = new EndpointSession(client, {
      port: this.options.target(),
      first: passage.first,
      endBackend: this.options.endBackend,
      onAnswer: passage.settle,
      onOver: () => {
        this.sessions.delete(session);
        giveBack?.();
        // If the server has not answered, it may just have been killed. The greeting then goes to the next server.
        if (session.isAnswered || passage.isCancel) session.finish();
        else this.again(client, passage, session.isTaken);
      },
    });
    // The session is added before anything is awaited, so that a cutover finds it.
    this.sessions.add(session);
    this.begun += 1;
    const giveBack = passage.isCancel ? null : this.places.add(session);
  }

  private again(client: Socket, passage: Passage, wasTaken: boolean): void {
    const hangUps = passage.hangUps + (wasTaken ? 1 : 0);
    if (hangUps > hangUpsMax) client.destroy();
    else setTimeout(() => this.admit(client, { ...passage, hangUps }), retryMs);
  }
}

/**
 * The pause in milliseconds after a client has gone, before the agent ends its backend. The agent repeats that at the
 * same interval until the backend is gone.
 */
const leavingMs = 1_000;
/** Milliseconds that a client has to read the last message before its socket is closed. */
const lastWordsMs = 10_000;

export interface EndpointSessionOptions {
  port: number;
  /** The client's first bytes, which are sent to the server first. */
  first: Buffer;
  endBackend: (port: number) => Promise<void>;
  onAnswer: () => void;
  /** Called when the socket to the server has closed. No backend is left then, unless the session was abandoned. */
  onOver: () => void;
}

/**
 * A session between a client and a server. It keeps its place until its backend has ended. Its client may have gone
 * long before that.
 */
class EndpointSession implements Occupant {
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

  /** Closes the connection to the server at once. The client's socket is left to `onOver`. */
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

  /**
   * Closes the session after its client. Postgres notices only at its next read that the client has gone, so a backend
   * that works on a long statement is ended.
   */
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
