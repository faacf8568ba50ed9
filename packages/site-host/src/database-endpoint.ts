import { connect, createServer, type Server, type Socket } from 'node:net';
import { type Gate, GateError } from './gate';
import { type FirstPacket, readFirstPacket, writeFatal, writeStartup } from './startup-packet';

/** The name by which customers know their database, whichever release is current. */
export const endpointDatabase = 'site';
const greetingMs = 10_000;
const socketsMax = 500;

type Startup = Extract<FirstPacket, { kind: 'startup' }>;

export interface EndpointOptions {
  gate: Gate;
  role: string;
  cluster: { host: string; port: number };
  /** The database of the current release, asked at the moment a session goes through; null while there is none. */
  currentDatabase: () => string | null;
}

/**
 * The one address of a site's database. It changes the database's name in the client's first packet to that of the current release and then
 * only passes bytes on: passwords are proved to Postgres itself (SCRAM), cancels are forwarded. New sessions wait while the gate is frozen.
 */
export class DatabaseEndpoint {
  readonly server: Server;
  private readonly options: EndpointOptions;
  private readonly sockets = new Set<Socket>();
  /** Those that have been given a database. */
  private readonly sessions = new Set<Socket>();

  constructor(options: EndpointOptions) {
    this.options = options;
    this.server = createServer({ noDelay: true }, (client) => this.greet(client));
    this.server.maxConnections = socketsMax;
  }

  /** Ends every session that goes to an old database; those that still wait are kept and will get the new one. */
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
    });
    client.setTimeout(greetingMs, () => client.destroy());
    let data: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      data = Buffer.concat([data, chunk]);
      const first = readFirstPacket(data);
      if (first.kind === 'incomplete') return;
      if (first.kind === 'encryption') {
        data = data.subarray(first.bytes);
        client.write('N');
        if (data.length > 0) client.destroy();
        return;
      }
      client.off('data', onData);
      client.pause();
      client.setTimeout(0);
      if (first.kind === 'invalid') client.destroy();
      else if (first.kind === 'cancel') this.forwardCancel(client, first.packet);
      else void this.admit(client, first, data.subarray(first.bytes));
    };
    client.on('data', onData);
  }

  private async admit(client: Socket, startup: Startup, rest: Buffer): Promise<void> {
    const refusal = this.refusalOf(startup);
    if (refusal) {
      client.end(refusal);
      return;
    }
    const left = new AbortController();
    client.once('close', () => left.abort());
    try {
      await this.options.gate.pass(left.signal);
    } catch (error) {
      client.end(writeFatal('57P03', error instanceof GateError ? `the site is being restored (${error.message})` : 'not available'));
      return;
    }
    const database = this.options.currentDatabase();
    if (client.destroyed) return;
    if (database === null) client.end(writeFatal('57P03', 'the site has no database yet'));
    else this.join(client, writeStartup(startup.protocol, new Map([...startup.parameters, ['database', database]])), rest);
  }

  private refusalOf({ parameters }: Startup): Buffer | null {
    const user = parameters.get('user') ?? '';
    if (user !== this.options.role) return writeFatal('28000', 'this address serves one role only');
    if (parameters.has('replication')) return writeFatal('28000', 'replication is not offered here');
    if ((parameters.get('database') ?? user) === endpointDatabase) return null;
    return writeFatal('3D000', `the database is called "${endpointDatabase}" here`);
  }

  private join(client: Socket, startup: Buffer, rest: Buffer): void {
    // Before anything is awaited: a switch from now on must find this session.
    this.sessions.add(client);
    const upstream = connect({ ...this.options.cluster, noDelay: true });
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    upstream.on('error', end).on('close', end);
    client.on('close', end);
    upstream.write(Buffer.concat([startup, rest]));
    client.pipe(upstream);
    upstream.pipe(client);
  }

  /** Postgres finds the session by its number and key; which database it is in does not matter. */
  private forwardCancel(client: Socket, packet: Buffer): void {
    const upstream = connect(this.options.cluster);
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    upstream.setTimeout(greetingMs, end);
    upstream.on('error', end).on('close', end);
    upstream.end(packet);
  }
}
