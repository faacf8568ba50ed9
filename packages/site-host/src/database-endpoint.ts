import { connect, type Server, type Socket } from 'node:net';
import { PostgresAddress, type Verdict } from '@drydock/host-kit/postgres-address';
import { type FirstPacket, readFirstPacket, writeFatal, writeStartup } from '@drydock/host-kit/startup-packet';
import { type Gate, GateError } from './gate';

/** The name by which customers know their database, whichever release is current. */
export const endpointDatabase = 'site';
const cancelMs = 10_000;

type Startup = Extract<FirstPacket, { kind: 'startup' }> & { rest: Buffer };
type Greeting = Startup | Extract<FirstPacket, { kind: 'cancel' }>;

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
  private readonly options: EndpointOptions;
  private readonly address: PostgresAddress<Greeting>;
  /** Those that have been given a database. */
  private readonly sessions = new Set<Socket>();

  constructor(options: EndpointOptions) {
    this.options = options;
    this.address = new PostgresAddress(judgeGreeting, (client, greeting) => {
      if (greeting.kind === 'cancel') this.forwardCancel(client, greeting.packet);
      else void this.admit(client, greeting);
    });
  }

  get server(): Server {
    return this.address.server;
  }

  /** Ends every session that goes to an old database; those that still wait are kept and will get the new one. */
  endSessions(): void {
    for (const client of this.sessions) client.destroy();
  }

  close(): Promise<void> {
    return this.address.close();
  }

  private async admit(client: Socket, startup: Startup): Promise<void> {
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
    else this.join(client, writeStartup(startup.protocol, new Map([...startup.parameters, ['database', database]])), startup.rest);
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
      this.sessions.delete(client);
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
    upstream.setTimeout(cancelMs, end);
    upstream.on('error', end).on('close', end);
    upstream.end(packet);
  }
}

function judgeGreeting(data: Buffer): Verdict<Greeting> {
  const first = readFirstPacket(data);
  if (first.kind === 'encryption') return 'decline_encryption';
  if (first.kind === 'startup') return { ...first, rest: data.subarray(first.bytes) };
  return first.kind === 'cancel' ? first : first.kind;
}
