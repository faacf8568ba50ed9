import type pg from 'pg';
import { z } from 'zod';
import { type DatabaseProperties, decidesValues } from '../dump/database-properties';
import { openSession, type Session } from '../session/session';
import { isPermanentSqlState, sqlStateOf, TransferError } from '../session/transfer-error';

/**
 * The roles that may own objects of a dump, in addition to the database's owner. The objects of each owner are created
 * in sessions of that owner.
 */
export interface LoadOwners {
  /**
   * Says which of the backup’s roles exist here and may own objects. These may create no roles until the load has
   * ended.
   */
  find(names: readonly string[]): Promise<string[]>;
  /** The URL of a login that can act as this owner, and as nobody else. */
  urlOf(owner: string): Promise<string>;
  /** Gives an owner the rights of others while `work` runs. */
  lend(owner: string, others: readonly string[], work: () => Promise<void>): Promise<void>;
  /**
   * Makes roles members of each other as they should be. Before that, no owner is a member of another, so that any
   * owner can be lent another's rights.
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

/** On two cores a third connection brought no gain. */
const lanes = 2;
/**
 * This many sessions of other owners are kept for each lane, because a database may have more owners than its server
 * accepts sessions.
 */
const othersMax = 4;

/**
 * The sessions of a load: one for each lane as the database's owner, and those of other owners, which are opened when
 * they are needed.
 */
export class LoadSessions {
  private readonly own: Login;
  private readonly owners: LoadOwners | undefined;
  private readonly signal: AbortSignal | undefined;
  private readonly opened = new Set<Opened>();
  private readonly first: Opened[] = [];
  private settings: DatabaseProperties['settings'] = [];
  /** The sessions by lane and owner. The session that was used last is at the end. */
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

  /** The client of the database's owner. */
  ownClient(lane = 0): pg.Client {
    const found = this.first[lane];
    if (found === undefined) throw new Error('no connection');
    return found.session.client;
  }

  /** `owner` is null for the database's owner. Work on one lane is done one after the other. */
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

  /** The clients of the sessions that are open. */
  clients(): pg.Client[] {
    return [...this.opened].map(({ session }) => session.client);
  }

  /** Ends whatever is waited for. */
  break(error: Error): void {
    for (const { session } of this.opened) session.client.connection.stream.destroy(error);
  }

  async close(): Promise<void> {
    await Promise.all([...this.opened].map(({ session }) => session.close()));
  }

  /**
   * Ends backends explicitly, because a sleeping backend does not notice that its client has gone. Sessions of one
   * login may end each other.
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
   * Applies the dumped database's settings to every session of this load, also to those that are open already, except
   * for settings that Postgres refuses. It refuses a text search configuration that is still to be made, so call this
   * again after that.
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
 * A dump is a customer's code. It runs only as a role that could do no harm even if a dangerous statement got through.
 * Throws `loader_too_powerful` or `database_not_empty`.
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

/** Throws `extension_untrusted` unless the server has each extension and lets an owner install it. */
export async function checkExtensions(client: pg.ClientBase, names: string[]): Promise<void> {
  const { rows } = await client.query(untrustedSql, [names]);
  const refused = z.array(z.object({ name: z.string() })).parse(rows);
  const [first] = refused;
  if (first === undefined) return;
  const reason = `not trusted by the server: ${refused.map((row) => row.name).join(', ')}`;
  throw new TransferError('extension_untrusted', reason, { object: `extension ${first.name}` });
}
