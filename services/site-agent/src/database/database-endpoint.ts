import { connect, type Server, type Socket } from 'node:net';
import { DatabaseAddress, type Verdict } from '@drydock/agent/host/database-address';
import type { InTurn } from '@drydock/agent/host/in-turn';
import { Newcomers } from '@drydock/agent/host/newcomers';
import { type FirstPacket, readFirstPacket, writeFatal, writeStartup } from '@drydock/agent/host/startup-packet';
import { type Gate, GateError } from '../serving/gate';
import { EndpointSession } from './endpoint-session';
import type { SitesCluster } from './sites-cluster';

/** The name by which customers know their database, whichever release is current. */
export const endpointDatabase = 'site';
const cancelMs = 10_000;
/** As many as may be let in: nobody who opens all of them at once is in their own way. */
const newcomersMax = 20;

type Startup = Extract<FirstPacket, { kind: 'startup' }> & { rest: Buffer };
type Cancel = Extract<FirstPacket, { kind: 'cancel' }>;
type Greeting = Startup | Cancel;

/** A release's database, and where it is. */
export interface PlacedDatabase {
  readonly database: string;
  readonly cluster: SitesCluster;
}

export interface EndpointOptions {
  gate: Gate;
  siteId: string;
  role: string;
  /** The database of the current release, read when a session is let through; null while there is none. */
  current: () => PlacedDatabase | null;
  /** Whether the database is so large that nobody may write to it any more. */
  isDiskFull: () => boolean;
  /** The databases of the releases that are being served. Pages and applications ask for them by name. */
  served: () => Iterable<PlacedDatabase>;
  /** Each piece that is carried, either way, takes a turn of the organisation's. */
  inTurn: InTurn;
}

/**
 * The one address of a site's database. It changes the database's name in the client's first packet to that of the current release and then
 * only passes bytes on: passwords are proved to Postgres itself (SCRAM), cancels are forwarded. New sessions wait while the gate is frozen;
 * those of a release itself do not, since its last requests are waited for.
 */
export class DatabaseEndpoint {
  private readonly options: EndpointOptions;
  private readonly address: DatabaseAddress<Greeting>;
  /** Sessions that have been given a database. */
  private readonly sessions = new Set<EndpointSession>();
  private readonly newcomers = new Newcomers(newcomersMax);

  constructor(options: EndpointOptions) {
    this.options = options;
    const admit = (client: Socket, greeting: Greeting, settle: () => void): void => {
      if (greeting.kind === 'cancel') this.forwardCancel(client, greeting);
      else void this.admit(client, greeting, settle);
    };
    this.address = new DatabaseAddress(judgeGreeting, admit, options.inTurn);
  }

  /** How many sessions there were; as long as it stays the same and none is open, nobody has written. */
  sessionsBegun = 0;

  get isInUse(): boolean {
    return this.sessions.size > 0;
  }

  get server(): Server {
    return this.address.server;
  }

  /** Serves a client that came another way than by this address: from an application's own network. */
  accept(client: Socket): void {
    this.address.accept(client);
  }

  /** Ends every session that goes to an old database; those that still wait are kept and will get the new one. */
  endSessions(): void {
    for (const session of this.sessions) session.end();
  }

  close(): Promise<void> {
    return this.address.close();
  }

  private async admit(client: Socket, startup: Startup, settle: () => void): Promise<void> {
    const refusal = this.refusalOf(startup);
    if (refusal) {
      client.end(refusal);
      return;
    }
    const asked = this.findServed(startup.parameters.get('database') ?? '');
    if (asked !== null) {
      this.join(client, startup, asked, settle);
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
    const current = this.options.current();
    if (client.destroyed) return;
    if (current === null) client.end(writeFatal('57P03', 'the site has no database yet'));
    else this.join(client, startup, current, settle);
  }

  private findServed(name: string): PlacedDatabase | null {
    for (const served of this.options.served()) if (served.database === name) return served;
    return null;
  }

  private refusalOf({ parameters }: Startup): Buffer | null {
    const user = parameters.get('user') ?? '';
    if (user !== this.options.role) return writeFatal('28000', 'this address serves one role only');
    if (this.options.isDiskFull()) return writeFatal('53100', 'the site has used up its disk space');
    if (parameters.has('replication')) return writeFatal('28000', 'replication is not offered here');
    const database = parameters.get('database') ?? user;
    if (database === endpointDatabase || this.findServed(database) !== null) return null;
    return writeFatal('3D000', `the database is called "${endpointDatabase}" here`);
  }

  private join(client: Socket, { protocol, parameters, rest }: Startup, { database, cluster }: PlacedDatabase, settle: () => void): void {
    const { siteId, role, inTurn } = this.options;
    // Before anything is awaited: a switch from now on must find this session.
    const session = new EndpointSession(client, {
      cluster,
      newcomers: [this.newcomers, cluster.newcomers],
      siteId,
      takePlace: (end) => cluster.budget.take(siteId, end),
      endBackend: (pid) => cluster.endSessionsOf(role, database, [pid]),
      onAuthenticated: settle,
      inTurn,
    });
    this.sessions.add(session);
    this.sessionsBegun += 1;
    session.start(Buffer.concat([writeStartup(protocol, new Map([...parameters, ['database', database]])), rest]), () =>
      this.sessions.delete(session),
    );
  }

  /** Postgres would end a statement of any site for its number and key, so that somebody could try keys: only sessions of this site can be named. */
  private forwardCancel(client: Socket, { pid, packet }: Cancel): void {
    const session = [...this.sessions].find((each) => each.pid === pid);
    if (session === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect(session.address);
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
