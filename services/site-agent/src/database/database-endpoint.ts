import { connect, type Server, type Socket } from 'node:net';
import {
  DatabaseAddress,
  type FirstPacket,
  Newcomers,
  readFirstPacket,
  SerialQueue,
  type Verdict,
  writeFatal,
  writeStartup,
} from '@drydock/agent/host';
import { EndpointSession, PostgresStart } from './endpoint-session';
import type { EndpointOptions, ReleaseDatabase, SiteEndpoint } from './release-database';

/** The database's name for customers, whichever release is live. */
export const endpointDatabase = 'site';
const cancelMs = 10_000;
/**
 * The most sessions of the site that have not logged in yet. The number equals that of all sessions that a site may
 * have, so that a client can open all of them at once.
 */
const newcomersMax = 20;

type Startup = Extract<FirstPacket, { kind: 'startup' }> & { rest: Buffer };
type Cancel = Extract<FirstPacket, { kind: 'cancel' }>;
type Greeting = Startup | Cancel;

/**
 * Serves the one address of a site's database. In a client's first packet it replaces the name `site` by the name of
 * the live release's database. Then it only passes bytes on, so Postgres itself checks the password. New sessions wait
 * during a freeze. Sessions of a release's application and pages name the release's database and do not wait, because
 * the freeze waits for their last requests.
 */
export class DatabaseEndpoint implements SiteEndpoint {
  private readonly options: EndpointOptions;
  private readonly address: DatabaseAddress<Greeting>;
  /** The sessions for which a database has been chosen, even before they have logged in. */
  private readonly sessions = new Set<EndpointSession>();
  private readonly newcomers = new Newcomers(newcomersMax);
  /**
   * Postgres makes a process for each session and each cancel request. A new process does not have its organisation's
   * priority yet. So a site starts only one session and one cancel at a time.
   */
  private readonly starts = new SerialQueue();
  private readonly cancels = new SerialQueue();

  constructor(options: EndpointOptions) {
    this.options = options;
    const admit = (client: Socket, greeting: Greeting, onAuthenticated: () => void): void => {
      if (greeting.kind === 'cancel') void this.cancels.run(() => this.forwardCancel(client, greeting));
      else void this.admit(client, greeting, onAuthenticated);
    };
    this.address = new DatabaseAddress(classifyGreeting, admit, options.inTurn);
  }

  sessionsBegun = 0;

  get isInUse(): boolean {
    return this.sessions.size > 0;
  }

  get server(): Server {
    return this.address.server;
  }

  /**
   * Serves a client from an application's own network. The database's name in the client's first packet says which
   * release the client belongs to.
   */
  accept(client: Socket): void {
    this.address.accept(client);
  }

  endSessions(): void {
    for (const session of this.sessions) session.end();
  }

  async openDoor(): Promise<null> {
    return null;
  }

  async closeDoors(): Promise<void> {}

  close(): Promise<void> {
    return this.address.close();
  }

  private async admit(client: Socket, startup: Startup, onAuthenticated: () => void): Promise<void> {
    const refusal = this.refusalOf(startup);
    if (refusal) {
      client.end(refusal);
      return;
    }
    const asked = this.findServed(startup.parameters.get('database') ?? '');
    if (asked !== null) {
      this.join(client, startup, asked, onAuthenticated);
      return;
    }
    const held = await this.options.gate.admit(client);
    if (held !== null) {
      client.end(writeFatal('57P03', held));
      return;
    }
    const current = this.options.current();
    if (client.destroyed) return;
    if (current === null) client.end(writeFatal('57P03', 'the site has no database yet'));
    else this.join(client, startup, current, onAuthenticated);
  }

  private findServed(name: string): ReleaseDatabase | null {
    for (const served of this.options.served()) if (served.name === name) return served;
    return null;
  }

  private refusalOf({ parameters }: Startup): Buffer | null {
    const user = parameters.get('user') ?? '';
    if (user !== this.options.role) return writeFatal('28000', 'this address serves one role only');
    if (this.options.isDiskFull()) return writeFatal('53100', 'the site has used up its disk space');
    if (parameters.has('replication')) return writeFatal('28000', 'replication is not offered here');
    if (startsLate(parameters)) return writeFatal('0A000', 'such options are not offered here, except -c name=value');
    const database = parameters.get('database') ?? user;
    if (database === endpointDatabase || this.findServed(database) !== null) return null;
    return writeFatal('3D000', `the database is called "${endpointDatabase}" here`);
  }

  private join(
    client: Socket,
    { protocol, parameters, rest }: Startup,
    database: ReleaseDatabase,
    onAuthenticated: () => void,
  ): void {
    const { siteId, inTurn } = this.options;
    const startup = Buffer.concat([
      writeStartup(protocol, new Map([...parameters, ['database', database.name]])),
      rest,
    ]);
    // The session is added at once, so that a switch during its start ends it too.
    const session = new EndpointSession(client, {
      database,
      beginning: new PostgresStart(),
      startup,
      newcomers: [this.newcomers, database.newcomers],
      siteId,
      starts: this.starts,
      onAuthenticated: () => {
        onAuthenticated();
        this.options.sessionBegan();
      },
      inTurn,
    });
    this.sessions.add(session);
    this.sessionsBegun += 1;
    session.start(() => this.sessions.delete(session));
  }

  /**
   * Forwards a cancel request only if it names a session of this site. Postgres itself would cancel a statement of any
   * site for a client that guesses the session's process id and key.
   */
  private async forwardCancel(client: Socket, { pid, packet }: Cancel): Promise<void> {
    const session = [...this.sessions].find((each) => each.number === pid);
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
    await new Promise<void>((resolve) => upstream.once('close', resolve));
  }
}

/**
 * Tells whether the session might delay its own start with `post_auth_delay`. It could then sleep for half an hour,
 * even after its client has gone, and hold a connection that no budget counts. Text in `options` that is no setting
 * also counts as a delay.
 */
function startsLate(parameters: Map<string, string>): boolean {
  const words = (parameters.get('options') ?? '').match(/(?:\\[\s\S]|[^ \t\n\v\f\r])+/g) ?? [];
  const text = words.map((word) => word.replaceAll(/\\([\s\S]?)/g, '$1'));
  const settings = [...parameters.keys()];
  for (let word = text.shift(); word !== undefined; word = text.shift()) {
    const setting = word === '-c' ? text.shift() : /^(?:-c|--)([\s\S]+)/.exec(word)?.[1];
    if (setting === undefined) return true;
    settings.push(setting);
  }
  return settings.some((setting) => /^post[_-]auth[_-]delay(?:=|$)/i.test(setting));
}

function classifyGreeting(data: Buffer): Verdict<Greeting> {
  const first = readFirstPacket(data);
  if (first.kind === 'encryption') return 'decline_encryption';
  if (first.kind === 'startup') return { ...first, rest: data.subarray(first.bytes) };
  return first.kind === 'cancel' ? first : first.kind;
}
