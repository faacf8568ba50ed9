import { Socket } from 'node:net';
import {
  carryInTurn,
  hearInTurn,
  type InTurn,
  type Newcomers,
  type SerialQueue,
  writeFatal,
} from '@drydock/agent/host';
import { scaled } from '@drydock/process';
import type { ReleaseDatabase, ServerAddress } from './release-database';

const headBytes = 5;
/**
 * How many bytes of each message are read: its type, its length, and four bytes that may be the kind of authentication
 * or the number of the session.
 */
const toldBytes = headBytes + 4;
const authentication = 'R'.charCodeAt(0);
const backendKey = 'K'.charCodeAt(0);

export type Refusal = 'full' | 'down';
const refusals: Record<Refusal, [sqlState: string, message: string]> = {
  full: ['53300', 'too many connections for this site'],
  down: ['57P03', 'the database does not start'],
};

/** Reads the first messages that a server sends in a session, and keeps only the fields below. */
export interface SessionStart {
  readonly isAuthenticated: boolean;
  /** The server's number for the session; null until the server has sent it. */
  readonly number: number | null;
  push(chunk: Buffer): void;
  /** Returns the refusal that the client gets in place of the server's last message. */
  refuse(why: Refusal): Buffer;
}

export class PostgresStart implements SessionStart {
  isAuthenticated = false;
  /** The pid of the session's process, from BackendKeyData. Later messages are not read. */
  number: number | null = null;
  private head: Buffer = Buffer.alloc(0);
  /** The number of bytes that are still missing from the current message. */
  private rest = 0;

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.number === null; ) {
      const taken =
        this.rest > 0
          ? Math.min(this.rest, chunk.length - at)
          : Math.min(toldBytes - this.head.length, chunk.length - at);
      if (this.rest > 0) this.rest -= taken;
      else this.readHead(chunk.subarray(at, at + taken));
      at += taken;
    }
  }

  refuse(why: Refusal): Buffer {
    return writeFatal(...refusals[why]);
  }

  private readHead(bytes: Buffer): void {
    this.head = Buffer.concat([this.head, bytes]);
    if (this.head.length < toldBytes) return;
    const told = this.head.readInt32BE(headBytes);
    if (this.head[0] === authentication && told === 0) this.isAuthenticated = true;
    if (this.head[0] === backendKey) this.number = told;
    this.rest = this.head.readUInt32BE(1) + 1 - toldBytes;
    this.head = Buffer.alloc(0);
  }
}

/** How long a session may wait until the sessions that came before it have started. */
const waitingMs = 10_000;
const authenticationMs = 3_000;
/**
 * Milliseconds that a backend has to end by itself after its client has gone. Then the site agent ends the backend, and
 * tries again at this interval until the backend is gone.
 */
const graceMs = 1_000;
/** The most that a client may send before it has authenticated. MariaDB itself would keep up to 16 MB in memory. */
const loginBytesMax = 128 * 1024;
/** Milliseconds that a client gets to read the last message before its socket is closed. */
const lastWordsMs = 10_000;

export interface EndpointSessionOptions {
  database: Pick<ReleaseDatabase, 'wake' | 'address' | 'takePlace' | 'endSessions'>;
  beginning: SessionStart;
  /** The client's first message to the server; empty if the server speaks first. */
  startup: Buffer;
  /**
   * The places for sessions that have not logged in: the site's own places, by client address, and the server's places,
   * by site.
   */
  newcomers: [ofSite: Newcomers, ofCluster: Newcomers];
  siteId: string;
  /**
   * The queue in which the site's sessions start, one at a time. Null for a server that starts no process for a
   * session.
   */
  starts: SerialQueue | null;
  onAuthenticated: () => void;
  inTurn: InTurn;
}

/**
 * A client's session through the endpoint of a site's database. The session is a newcomer until the server has let it
 * in. Then it takes one of the site's places. It gives the place back when the backend closes its socket, because the
 * backend may outlive the client.
 */
export class EndpointSession {
  private readonly client: Socket;
  private readonly options: EndpointSessionOptions;
  private readonly upstream = new Socket();
  private late: NodeJS.Timeout | undefined;
  private readonly leaveNewcomers: () => void;
  private giveBack: (() => void) | null = null;
  private ending: NodeJS.Timeout | undefined;

  constructor(client: Socket, options: EndpointSessionOptions) {
    this.client = client;
    this.options = options;
    const end = (): void => this.end();
    const [ofSite, ofCluster] = options.newcomers;
    const leaves = [ofSite.add(client.remoteAddress ?? '', end), ofCluster.add(options.siteId, end)];
    this.leaveNewcomers = () => {
      clearTimeout(this.late);
      for (const leave of leaves) leave();
    };
  }

  /** `onOver` is called when the connection to the server has ended, or was never made. */
  start(onOver: () => void): void {
    const { client, upstream } = this;
    upstream.on('error', () => undefined);
    upstream.once('close', () => {
      this.leaveNewcomers();
      clearInterval(this.ending);
      this.giveBack?.();
      client.destroySoon();
      client.setTimeout(lastWordsMs, () => client.destroy());
      onOver();
    });
    client.once('close', () => this.leave());
    this.options.database.wake().then(
      () => {
        this.late = setTimeout(() => this.end(), scaled(waitingMs));
        const { starts } = this.options;
        void (starts === null ? this.connect() : starts.run(() => this.connect()));
      },
      () => {
        client.end(this.options.beginning.refuse('down'));
        upstream.destroy();
      },
    );
  }

  /**
   * Resolves when the server has answered, or when the connection has ended. Until then a Postgres server may be
   * starting a process for the session, even if the client has gone.
   */
  private async connect(): Promise<void> {
    const { client, upstream } = this;
    clearTimeout(this.late);
    if (this.ending !== undefined || upstream.destroyed) return;
    this.late = setTimeout(() => this.end(), scaled(authenticationMs));
    upstream.setNoDelay(true).connect(this.address);
    if (this.options.startup.length > 0) upstream.write(this.options.startup);
    carryInTurn(client, upstream, this.options.inTurn);
    let loginBytes = 0;
    const count = (piece: Buffer): void => {
      loginBytes += piece.length;
      if (this.options.beginning.isAuthenticated) client.off('data', count);
      else if (loginBytes > loginBytesMax) this.end();
    };
    client.on('data', count);
    hearInTurn(upstream, this.options.inTurn, this.passOn);
    await new Promise<void>((resolve) => upstream.once('data', () => resolve()).once('close', resolve));
  }

  get address(): ServerAddress {
    return this.options.database.address;
  }

  get number(): number | null {
    return this.options.beginning.number;
  }

  /**
   * Ends the session without waiting for its statement. After the login, the site agent ends the backend through a
   * session of its own. Before the login, the server waits for the client and notices the closed socket by itself. So a
   * stranger who connects again and again causes no session of the site agent.
   */
  end(): void {
    this.client.destroy();
    this.leave();
    if (this.options.beginning.isAuthenticated) this.endBackend();
  }

  private endBackend(): void {
    const { number } = this;
    if (number !== null) void this.options.database.endSessions([number]).catch(() => undefined);
  }

  /**
   * Passes the server's bytes on to the client. `beginning` reads them too, until it knows all that it needs. Bytes for
   * a client that has gone are dropped.
   */
  private readonly passOn = (chunk: Buffer, next: () => void): void => {
    const { client } = this;
    const { beginning } = this.options;
    const wasAuthenticated = beginning.isAuthenticated;
    beginning.push(chunk);
    if (beginning.isAuthenticated && !wasAuthenticated && !this.takePlace()) {
      client.end(beginning.refuse('full'));
      this.leave();
      return;
    }
    if (!client.writable || client.write(chunk)) next();
    else client.once('drain', next);
  };

  private takePlace(): boolean {
    // A session whose client has gone takes no place and is not refused, because it soon ends.
    if (this.client.destroyed) return true;
    this.leaveNewcomers();
    this.giveBack = this.options.database.takePlace(() => this.end());
    if (this.giveBack !== null) this.options.onAuthenticated();
    return this.giveBack !== null;
  }

  /**
   * Ends the backend after the client has gone. By itself, the backend notices only when it reads again, and before
   * that it may work on an endless statement. A backend whose number is not known yet waits for its client, so it ends
   * with the socket.
   */
  private leave(): void {
    const { upstream } = this;
    if (this.ending !== undefined || upstream.destroyed) return;
    upstream.end();
    upstream.resume(); // The server's bytes may have waited for the client.
    this.ending = setInterval(() => {
      if (this.number === null) upstream.destroy();
      else this.endBackend();
    }, graceMs);
  }
}
