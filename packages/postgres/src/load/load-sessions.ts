import type pg from 'pg';
import { z } from 'zod';
import { type DatabaseProperties, decidesValues } from '../dump/database-properties';
import { openSession, type Session } from '../session/session';
import { isPermanentSqlState, sqlStateOf, TransferError } from '../session/transfer-error';
import { extensionOf } from './statement.rules';
import type { SqlStatement } from './statement-owners';

/**
 * The roles that may own objects of a dump, besides the database's owner. Each owner's objects are created in sessions
 * of that owner.
 */
export interface LoadOwners {
  /**
   * Returns those of the named roles that exist and may own objects. Takes from them the right to create roles until
   * the load ends.
   */
  find(names: readonly string[]): Promise<string[]>;
  /** Returns the URL of a login that can act only as this owner. */
  urlOf(owner: string): Promise<string>;
  /** Gives an owner the rights of others while `work` runs. */
  lend(owner: string, others: readonly string[], work: () => Promise<void>): Promise<void>;
  /**
   * Restores the memberships between roles. The load begins without memberships, because `lend` grants some, and
   * Postgres refuses cyclic ones.
   */
  join(): Promise<void>;
}

interface Login {
  url: string;
  role?: string | undefined;
}

interface Opened extends Login {
  session: Session;
}

/** The number of lanes, which fill tables in parallel. A third lane gains nothing on two cores. */
const lanes = 2;
/**
 * The most sessions of other owners that a lane keeps. A database may have more owners than its server accepts
 * sessions.
 */
const othersMax = 4;

/**
 * The sessions of a load. Each lane has one session of the database's owner, and opens sessions of other owners when
 * they are needed.
 */
export class LoadSessions {
  private readonly own: Login;
  private readonly owners: LoadOwners | undefined;
  private readonly signal: AbortSignal | undefined;
  private readonly opened = new Set<Opened>();
  private readonly first: Opened[] = [];
  private settings: DatabaseProperties['settings'] = [];
  /** Sessions by lane and owner. The most recently used session is at the end. */
  private readonly others: Map<string, Opened>[] = [];

  constructor(own: Login, owners: LoadOwners | undefined, signal: AbortSignal | undefined) {
    this.own = own;
    this.owners = owners;
    this.signal = signal;
  }

  async open(): Promise<void> {
    for (let lane = 0; lane < lanes; lane++) {
      this.first.push(await this.connect(this.own));
      this.others.push(new Map());
    }
  }

  get lanes(): number[] {
    return this.first.map((_, lane) => lane);
  }

  /** Returns the client of the database's owner. */
  ownClient(lane = 0): pg.Client {
    const found = this.first[lane];
    if (found === undefined) throw new Error('no connection');
    return found.session.client;
  }

  /**
   * Returns an owner's client. Null stands for the database's owner. If the lane has too many sessions, the session
   * that was unused for longest is closed. It runs no statement then, because the work of a lane is sequential.
   */
  async clientOf(owner: string | null, lane = 0): Promise<pg.Client> {
    const others = this.others[lane];
    if (owner === null || this.owners === undefined || others === undefined) return this.ownClient(lane);
    const used = others.get(owner) ?? (await this.connect({ url: await this.owners.urlOf(owner), role: owner }));
    others.delete(owner);
    others.set(owner, used);
    const [[oldest, unused] = []] = others;
    if (others.size > othersMax && oldest !== undefined && unused !== undefined) {
      others.delete(oldest);
      this.opened.delete(unused);
      await unused.session.close();
    }
    return used.session.client;
  }

  clients(): pg.Client[] {
    return [...this.opened].map(({ session }) => session.client);
  }

  /** Destroys all connections, so that pending queries fail with `error`. */
  break(error: Error): void {
    for (const { session } of this.opened) session.client.connection.stream.destroy(error);
  }

  async close(): Promise<void> {
    await Promise.all([...this.opened].map(({ session }) => session.close()));
  }

  /**
   * Ends the backends, because a waiting backend does not notice that its client is gone. A login may end its own
   * sessions.
   */
  async endBackends(): Promise<void> {
    for (const { url, role, session: left } of this.opened) {
      const session = await openSession(url, { purpose: 'load', role }).catch(() => null);
      await session?.client.query('set role none').catch(() => undefined);
      const pid: unknown = Reflect.get(left.client, 'processID');
      await session?.client
        .query('select pg_catalog.pg_terminate_backend($1::int, 5000)', [pid])
        .catch(() => undefined);
      await session?.close();
    }
  }

  /**
   * Applies the dumped settings to all present and future sessions of the load. A setting that Postgres refuses is
   * skipped. The load calls this again after the schema exists, because a setting may name a text search configuration
   * of the dump.
   */
  async use(properties: DatabaseProperties | null): Promise<void> {
    this.settings = (properties?.settings ?? []).filter(({ key }) => decidesValues(key));
    for (const { session } of this.opened) await this.set(session);
  }

  private async set({ client }: Session): Promise<void> {
    for (const { key, value } of this.settings)
      await client.query('select pg_catalog.set_config($1, $2, false)', [key, value]).catch((error: unknown) => {
        if (!isPermanentSqlState(sqlStateOf(error))) throw error;
      });
  }

  private async connect(login: Login): Promise<Opened> {
    const session = await openSession(login.url, { purpose: 'load', role: login.role, signal: this.signal });
    const opened = { ...login, session };
    this.opened.add(opened);
    await this.set(session);
    return opened;
  }
}

const powersSql = `select r.rolsuper or r.rolcreaterole or r.rolreplication or r.rolbypassrls
  or exists (select from pg_catalog.pg_roles p
    where p.rolname in ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files')
    and pg_catalog.pg_has_role(r.oid, p.oid, 'member')) as powerful
  from pg_catalog.pg_roles r where r.rolname in (current_user, session_user) order by 1 desc limit 1`;
const contentsSql = `select exists (select from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema')
  or exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema')
  or exists (select from pg_catalog.pg_largeobject_metadata) as filled`;
const untrustedSql = `select name from pg_catalog.unnest($1::text[]) as wanted (name) where not exists
  (select from pg_catalog.pg_available_extension_versions v where v.name = wanted.name and v.trusted)`;

/**
 * Checks the loading role and the target. A dump is a customer's code, so it runs only as a role that cannot do harm,
 * even if a dangerous statement passed the checks. Throws `loader_too_powerful` or `database_not_empty`.
 */
export async function checkTarget(client: pg.ClientBase): Promise<void> {
  const { powerful } = z.object({ powerful: z.boolean() }).parse((await client.query(powersSql)).rows[0]);
  if (powerful)
    throw new TransferError(
      'loader_too_powerful',
      'a dump is never loaded by a superuser or a role with rights beyond its database',
    );
  const { filled } = z.object({ filled: z.boolean() }).parse((await client.query(contentsSql)).rows[0]);
  if (filled) throw new TransferError('database_not_empty', 'the target database holds something already');
}

/** Throws `extension_untrusted` unless an owner may install every extension of the statements on the server. */
export async function checkExtensions(client: pg.ClientBase, statements: readonly SqlStatement[]): Promise<void> {
  const names = statements.map(extensionOf).filter((name) => name !== null);
  const { rows } = await client.query(untrustedSql, [names]);
  const refused = z.array(z.object({ name: z.string() })).parse(rows);
  const [first] = refused;
  if (first === undefined) return;
  const reason = `not trusted by the server: ${refused.map((row) => row.name).join(', ')}`;
  throw new TransferError('extension_untrusted', reason, { object: `extension ${first.name}` });
}
