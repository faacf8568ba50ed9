import { once } from 'node:events';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { DatabaseAddress, Newcomers, packetHeadBytes, writeMysqlError } from '@drydock/agent/host';
import { EndpointSession, type Refusal, type SessionStart } from './endpoint-session';
import type { EndpointOptions, ReleaseDatabase, SiteEndpoint } from './release-database';

/**
 * The most sessions of the site that have not logged in yet. The number equals that of all sessions that a site may
 * have, so that a client can open all of them at once.
 */
const newcomersMax = 20;
/**
 * While the site has this many sessions, including those that are ending, new clients of its address wait. The server
 * accepts more, so that sessions are left for the site agent.
 */
const sessionsMax = 150;
const notAvailable = 1053;
const diskFull = 1021;

/**
 * The one address of a site's MariaDB. In this protocol the server sends the first message. So the endpoint connects a
 * client to the live release's server as soon as the gate is open, and from then on only passes bytes on. An
 * application comes through its own network, and gets the server of its own release.
 */
export class MariadbEndpoint implements SiteEndpoint {
  private readonly options: EndpointOptions;
  private readonly address: DatabaseAddress<object>;
  private readonly sessions = new Set<EndpointSession>();
  private readonly newcomers = new Newcomers(newcomersMax);
  private readonly doors = new Map<ReleaseDatabase, Server>();
  /**
   * The database of each client that comes through an application's own network or through a door (a socket for pages).
   */
  private readonly meant = new WeakMap<Socket, ReleaseDatabase>();
  /** Clients that wait until the site has fewer sessions, in the order of their arrival. */
  private readonly waiting = new Map<Socket, () => void>();
  sessionsBegun = 0;

  constructor(options: EndpointOptions) {
    this.options = options;
    // The server speaks first, so there is no greeting to classify.
    const classify = (): object => ({});
    this.address = new DatabaseAddress(
      classify,
      (client, _greeting, onAuthenticated) => void this.admit(client, onAuthenticated),
      options.inTurn,
    );
  }

  get isInUse(): boolean {
    return this.sessions.size > 0;
  }

  get server(): Server {
    return this.address.server;
  }

  accept(client: Socket, database: ReleaseDatabase): void {
    this.meant.set(client, database);
    this.address.accept(client);
  }

  endSessions(): void {
    for (const session of this.sessions) session.end();
  }

  async openDoor(database: ReleaseDatabase): Promise<string> {
    const known = this.doors.get(database)?.address();
    if (typeof known === 'string') return known;
    const door = createServer((client) => this.accept(client, database));
    const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-door-'));
    const { uid } = this.options;
    if (uid !== null) await chown(folder, uid, uid);
    const file = path.join(folder, 'pages.sock');
    await once(door.listen(file), 'listening');
    // All accounts may use the socket, but only the site's account can enter its folder.
    await chmod(file, 0o666);
    this.doors.set(database, door);
    return file;
  }

  async closeDoors(): Promise<void> {
    for (const database of [...this.doors.keys()]) if (!this.isServed(database)) await this.closeDoor(database);
  }

  async close(): Promise<void> {
    await this.address.close();
    for (const database of [...this.doors.keys()]) await this.closeDoor(database);
  }

  private async closeDoor(database: ReleaseDatabase): Promise<void> {
    const door = this.doors.get(database);
    this.doors.delete(database);
    const file = door?.address();
    door?.close();
    if (typeof file === 'string') await rm(path.dirname(file), { recursive: true, force: true });
  }

  private async admit(client: Socket, onAuthenticated: () => void): Promise<void> {
    if (this.options.isDiskFull()) {
      client.end(writeMysqlError(diskFull, 'the site has used up its disk space'));
      return;
    }
    const meant = this.meant.get(client);
    if (meant !== undefined) {
      if (this.isServed(meant)) this.join(client, meant, onAuthenticated);
      else client.end(writeMysqlError(notAvailable, 'the release of this application is no longer served'));
      return;
    }
    const held = await this.options.gate.admit(client);
    if (held !== null) {
      client.end(writeMysqlError(notAvailable, held));
      return;
    }
    this.waiting.set(client, () => {
      // Another release may be live by now.
      const current = this.options.current();
      if (current === null) client.end(writeMysqlError(notAvailable, 'the site has no database yet'));
      else if (!client.destroyed) this.join(client, current, onAuthenticated);
    });
    client.once('close', () => this.waiting.delete(client));
    this.goOn();
  }

  private isServed(database: ReleaseDatabase): boolean {
    for (const served of this.options.served()) if (served === database) return true;
    return false;
  }

  private join(client: Socket, database: ReleaseDatabase, onAuthenticated: () => void): void {
    const { siteId, inTurn } = this.options;
    // The session is added at once, so that a switch during its start ends it too.
    const session = new EndpointSession(client, {
      database,
      beginning: new MariadbStart(),
      startup: Buffer.alloc(0),
      newcomers: [this.newcomers, database.newcomers],
      siteId,
      starts: null,
      onAuthenticated,
      inTurn,
    });
    this.sessions.add(session);
    this.sessionsBegun += 1;
    session.start(() => {
      this.sessions.delete(session);
      this.goOn();
    });
  }

  private goOn(): void {
    for (const [client, join] of this.waiting) {
      if (this.sessions.size >= sessionsMax) return;
      this.waiting.delete(client);
      join();
    }
  }
}

const greetingProtocol = 10;
const okPacket = 0x00;
/** The most bytes of a greeting that are read. A real greeting is shorter: a version, a number, a scramble. */
const greetingBytesMax = 1_024;

const refusals: Record<Refusal, [code: number, message: string, sqlState: string]> = {
  full: [1040, 'too many connections for this site', '08004'],
  down: [1053, 'the database does not start', '08S01'],
};

/**
 * Reads the start of a MariaDB session without TLS. The server's greeting has the session's number. An OK packet lets
 * the client in.
 */
class MariadbStart implements SessionStart {
  isAuthenticated = false;
  number: number | null = null;
  private head: Buffer = Buffer.alloc(0);
  /** The number of bytes that are still missing from the current packet. */
  private rest = 0;
  private sequence = 0;

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.isAuthenticated; ) {
      const wanted = this.rest > 0 ? this.rest : this.headBytes - this.head.length;
      const taken = Math.min(wanted, chunk.length - at);
      if (this.rest > 0) this.rest -= taken;
      else this.readHead(chunk.subarray(at, at + taken));
      at += taken;
    }
  }

  /** Returns a message that the client gets in place of the last packet that was read. */
  refuse(why: Refusal): Buffer {
    const [code, message, sqlState] = refusals[why];
    return this.number === null
      ? writeMysqlError(code, message)
      : writeMysqlError(code, message, { sequence: this.sequence, sqlState });
  }

  /**
   * The number of bytes that are read of the current packet: its header and, of the greeting, up to 1,024 bytes. Of
   * each later packet one byte is read after the header.
   */
  private get headBytes(): number {
    if (this.head.length < packetHeadBytes || this.number !== null) return packetHeadBytes + 1;
    return packetHeadBytes + Math.min(this.lengthOfPacket, greetingBytesMax);
  }

  private get lengthOfPacket(): number {
    return this.head.readUIntLE(0, 3);
  }

  private readHead(bytes: Buffer): void {
    this.head = Buffer.concat([this.head, bytes]);
    if (this.head.length < this.headBytes) return;
    this.sequence = this.head[3] ?? 0;
    const kind = this.head[packetHeadBytes];
    if (this.number === null && kind === greetingProtocol)
      this.number = readSessionNumber(this.head.subarray(packetHeadBytes));
    else if (kind === okPacket) this.isAuthenticated = true;
    this.rest = Math.max(0, packetHeadBytes + this.lengthOfPacket - this.head.length);
    this.head = Buffer.alloc(0);
  }
}

/**
 * Reads the session's number, which follows the protocol's version and the text of the server's version. The text ends
 * with a zero.
 */
function readSessionNumber(greeting: Buffer): number | null {
  const at = greeting.indexOf(0, 1) + 1;
  return at === 0 || at + 4 > greeting.length ? null : greeting.readUInt32LE(at);
}
