import { connect, type Server, type Socket } from 'node:net';
import { DatabaseAddress, type Verdict } from '@drydock/agent/host/database-address';
import { Newcomers } from '@drydock/agent/host/newcomers';
import { type FirstPacket, readFirstPacket, writeFatal, writeStartup } from '@drydock/agent/host/startup-packet';
import { type Gate, GateError } from '../serving/gate';
import type { ConnectionBudget } from './connection-budget';
import { EndpointSession } from './endpoint-session';
import type { SitesAddress } from './sites-cluster';

/** The name by which customers know their database, whichever release is current. */
export const endpointDatabase = 'site';
const cancelMs = 10_000;
/** As many as may be let in: nobody who opens all of them at once is in their own way. */
const newcomersMax = 20;

type Startup = Extract<FirstPacket, { kind: 'startup' }> & { rest: Buffer };
type Cancel = Extract<FirstPacket, { kind: 'cancel' }>;
type Greeting = Startup | Cancel;

export interface EndpointOptions {
  gate: Gate;
  siteId: string;
  role: string;
  /** That of all sites of the cluster. */
  budget: ConnectionBudget;
  /** Sessions of all sites of the cluster that Postgres has not let in yet, by site. */
  newcomers: Newcomers;
  /** Ends the backend of this number, if it is this site's in that database. */
  endBackend: (pid: number, database: string) => Promise<void>;
  cluster: SitesAddress;
  /** The database of the current release, asked at the moment a session goes through; null while there is none. */
  currentDatabase: () => string | null;
  /** Whether the database is so large that nobody may write to it any more. */
  isDiskFull: () => boolean;
  /** Whether this is the database of a release that is being served: its pages and its application ask for it by its own name. */
  isServed: (database: string) => boolean;
}

/**
 * The one address of a site's database. It changes the database's name in the client's first packet to that of the current release and then
 * only passes bytes on: passwords are proved to Postgres itself (SCRAM), cancels are forwarded. New sessions wait while the gate is frozen;
 * those of a release itself do not, since its last requests are waited for.
 */
export class DatabaseEndpoint {
  private readonly options: EndpointOptions;
  private readonly address: DatabaseAddress<Greeting>;
  /** Those that have been given a database. */
  private readonly sessions = new Set<EndpointSession>();
  private readonly newcomers = new Newcomers(newcomersMax);

  constructor(options: EndpointOptions) {
    this.options = options;
    this.address = new DatabaseAddress(judgeGreeting, (client, greeting, settle) => {
      if (greeting.kind === 'cancel') this.forwardCancel(client, greeting);
      else void this.admit(client, greeting, settle);
    });
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
    const asked = startup.parameters.get('database') ?? '';
    if (this.options.isServed(asked)) {
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
    const database = this.options.currentDatabase();
    if (client.destroyed) return;
    if (database === null) client.end(writeFatal('57P03', 'the site has no database yet'));
    else this.join(client, startup, database, settle);
  }

  private refusalOf({ parameters }: Startup): Buffer | null {
    const user = parameters.get('user') ?? '';
    if (user !== this.options.role) return writeFatal('28000', 'this address serves one role only');
    if (this.options.isDiskFull()) return writeFatal('53100', 'the site has used up its disk space');
    if (parameters.has('replication')) return writeFatal('28000', 'replication is not offered here');
    const database = parameters.get('database') ?? user;
    if (database === endpointDatabase || this.options.isServed(database)) return null;
    return writeFatal('3D000', `the database is called "${endpointDatabase}" here`);
  }

  private join(client: Socket, { protocol, parameters, rest }: Startup, database: string, settle: () => void): void {
    // Before anything is awaited: a switch from now on must find this session.
    const session = new EndpointSession(client, {
      cluster: this.options.cluster,
      newcomers: [this.newcomers, this.options.newcomers],
      siteId: this.options.siteId,
      takePlace: (end) => this.options.budget.take(this.options.siteId, end),
      endBackend: (pid) => this.options.endBackend(pid, database),
      onAuthenticated: settle,
    });
    this.sessions.add(session);
    this.sessionsBegun += 1;
    session.start(Buffer.concat([writeStartup(protocol, new Map([...parameters, ['database', database]])), rest]), () =>
      this.sessions.delete(session),
    );
  }

  /** Postgres would end a statement of any site for its number and key, so that somebody could try keys: only sessions of this site can be named. */
  private forwardCancel(client: Socket, { pid, packet }: Cancel): void {
    if (![...this.sessions].some((session) => session.pid === pid)) {
      client.destroy();
      return;
    }
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
