import pg from 'pg';
import { z } from 'zod';
import { openSession, type Session, type SessionOptions } from '../session/session';
import { isPermanentSqlState, sqlStateOf } from '../session/transfer-error';
import {
  dropTransferRole,
  loginUrl,
  makeLoader,
  makeReader,
  sweepTransferRoles,
  type TransferLogin,
} from '../session/transfer-roles';
import { type OwnObjects, ownObjects, platformRole, sessionPrefix } from './copy/own-objects';

export type UpgradeErrorCode =
  | 'busy'
  | 'not_caught_up'
  | 'replication_failed'
  | 'statement_failed'
  | 'not_sealed'
  | 'copy_failed'
  | 'rights_differ';

export interface UpgradeErrorOptions extends ErrorOptions {
  /** The object in the customer's words, such as `TABLE public.orders`. */
  object?: string | undefined;
}

/**
 * The reason why a stage stopped. `code` is stable. `message` may quote SQL of the customer, and belongs only in the
 * log. `object` and `reason` may be shown to the customer. The customer's content on the old instance stays unchanged.
 * After `busy`, `not_caught_up` and `replication_failed` another attempt may succeed.
 */
export class UpgradeError extends Error {
  override readonly name = 'UpgradeError';
  readonly code: UpgradeErrorCode;
  readonly object: string | null;
  /** The cause's message, or `message` without a cause. Postgres' detail is left out, because it contains values. */
  readonly reason: string;
  /** True if another attempt with the same content fails again. */
  readonly isPermanent: boolean;

  constructor(code: UpgradeErrorCode, message: string, options: UpgradeErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.object = options.object ?? null;
    this.reason = options.cause instanceof Error ? options.cause.message : message;
    this.isPermanent =
      code === 'rights_differ' || (code === 'statement_failed' && isPermanentSqlState(sqlStateOf(options.cause)));
  }
}

/**
 * A move of a database to another instance, for an upgrade or a restore: both instances, and the worker's fencing
 * token. The URLs are the superuser's for the database `postgres`, and never leave the host.
 */
export interface Move {
  /** The URL of the serving instance. */
  oldUrl: string;
  /** The URL of the instance that is filled. */
  targetUrl: string;
  databaseName: string;
  /** `restore` fills the target from a backup, without content of the old database. */
  path: 'logical' | 'offline' | 'restore';
  /** 32 random bytes as hex, created once for the move. Names and passwords of its objects are derived from them. */
  secret: string;
  /** The worker's fencing token in decimal. Sessions with an older token are ended before a stage. */
  fence: string;
  signal?: AbortSignal | undefined;
  /** Gets a fraction from 0 to 1. */
  progress?: (fraction: number) => void;
}

export type Side = 'old' | 'target';

/** Returns the URL of another database with the same login. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${encodeURIComponent(database)}`;
  return changed.href;
}

const endOlderSql = `select pg_catalog.pg_terminate_backend(pid, 5000) from pg_catalog.pg_stat_activity
  where application_name like $1 || '%' and pid <> pg_catalog.pg_backend_pid()
    and pg_catalog.substr(application_name, pg_catalog.length($1) + 1) ~ '^[0-9]{1,18}$'
    and pg_catalog.substr(application_name, pg_catalog.length($1) + 1)::bigint < $2::bigint`;

const grantParameterSql = (role: string): string =>
  `grant set on parameter session_replication_role to ${pg.escapeIdentifier(role)}`;
const revokeParameterSql = (role: string): string =>
  `revoke set on parameter session_replication_role from ${pg.escapeIdentifier(role)}`;

export interface StageNames {
  /** Marks the stage's readers and loaders. Leftovers with the same tag are dropped. */
  tag?: string;
  /**
   * The `application_name` of the stage's sessions. By default it contains the fencing token, by which a later stage
   * finds and ends these sessions.
   */
  applicationName?: string;
}

/**
 * The sessions of a stage, which is one operation on a move, such as `copySchema`. A session is opened when it is
 * needed.
 *
 * - `server`: the superuser in `postgres`. It changes roles, databases and sessions.
 * - `reader`: a temporary reader in the customer's database. It reads the catalogue and rows.
 * - `publisher`, `replicator`, `keeper`: the move's roles in the customer's database. The publisher has the publication
 * and the marker, the replicator creates the slot, and the keeper has the subscription and the records.
 * - `loader`: a temporary role on the target that acts as one owner. It runs all code of the customer except that in
 * ANALYZE.
 * - `guardian`: the superuser in the customer's database. It refuses DDL on the old server, and changes the catalogue
 * of the target.
 */
export class Stage {
  readonly own: OwnObjects;
  readonly move: Move;
  private readonly tag: string;
  private readonly applicationName: string;
  private readonly sessions = new Map<string, Promise<Session>>();
  private readonly logins = new Map<string, Promise<{ side: Side; login: TransferLogin }>>();

  constructor(
    move: Move,
    { tag = `upgrade ${move.databaseName}`, applicationName = `${sessionPrefix}${move.fence}` }: StageNames = {},
  ) {
    this.move = move;
    this.tag = tag;
    this.applicationName = applicationName;
    this.own = ownObjects(move.secret);
  }

  async server(side: Side): Promise<pg.Client> {
    return (
      await this.open(`server ${side}`, async () => {
        const session = await this.connect(this.urlOf(side), { purpose: 'admin' });
        await session.client.query(endOlderSql, [sessionPrefix, this.move.fence]);
        await sweepTransferRoles(session.client, this.tag);
        return session;
      })
    ).client;
  }

  /** Returns a reader's session. Concurrent work uses different lanes. */
  async reader(side: Side, lane = 0): Promise<pg.Client> {
    return (
      await this.open(`reader ${side} ${lane}`, async () =>
        this.connect(await this.readerUrl(side), { purpose: 'read' }),
      )
    ).client;
  }

  /** Returns a reader's URL, for programs that connect by themselves. */
  async readerUrl(side: Side): Promise<string> {
    const login = await this.login(`reader ${side}`, side, (admin) =>
      makeReader({ admin, database: this.move.databaseName, tag: this.tag }),
    );
    return loginUrl(this.urlOf(side), login, this.move.databaseName);
  }

  async loader(owner: string, lane = 0): Promise<pg.Client> {
    const url = (await this.loaderLogin('loader', owner)).url;
    return (await this.open(`loader ${owner} ${lane}`, () => this.connect(url, { purpose: 'load', role: owner })))
      .client;
  }

  /** Returns a loader's session whose writes fire no ordinary trigger. */
  async rowsLoader(owner: string, lane = 0): Promise<pg.Client> {
    const { url, login } = await this.loaderLogin('rows loader', owner);
    return (
      await this.open(`rows loader ${owner} ${lane}`, async () => {
        await (await this.server('target')).query(grantParameterSql(login.role));
        return this.connect(url, { purpose: 'load', role: owner, settings: { session_replication_role: 'replica' } });
      })
    ).client;
  }

  /** Returns a loader's URL, for code that opens its own session. The session must set `role` to `owner`. */
  async loaderUrl(owner: string): Promise<string> {
    return (await this.loaderLogin('loader', owner)).url;
  }

  publisher = (): Promise<pg.Client> => this.ownSession('old', this.own.publisher);
  replicator = (): Promise<pg.Client> => this.ownSession('old', this.own.replicator);
  keeper = (): Promise<pg.Client> => this.ownSession('target', this.own.keeper);

  /**
   * Returns a superuser's session in the customer's database. Its statements use only objects of the move and the
   * catalogue.
   */
  async guardian(side: Side): Promise<pg.Client> {
    const url = withDatabase(this.urlOf(side), this.move.databaseName);
    return (await this.open(`guardian ${side}`, () => this.connect(url, { purpose: 'admin' }))).client;
  }

  /** Returns the roles of the move and of this stage on a server. They keep access when customers are locked out. */
  async rolesOf(side: Side): Promise<string[]> {
    const made = await Promise.all(this.logins.values());
    const { publisher, replicator, keeper } = this.own;
    const fixed = side === 'old' ? [publisher, replicator] : [keeper];
    return [...fixed, ...made.filter((login) => login.side === side).map(({ login }) => login)].map(({ role }) => role);
  }

  /** Closes the sessions and drops the stage's readers and loaders. */
  async close(): Promise<void> {
    const readersAndLoaders = await Promise.allSettled(this.logins.values());
    const isServer = ([key]: [string, unknown]): boolean => key.startsWith('server ');
    await this.closeSessions([...this.sessions].filter((entry) => !isServer(entry)).map(([, session]) => session));
    for (const outcome of readersAndLoaders) {
      if (outcome.status === 'rejected') continue;
      const { side, login } = outcome.value;
      // The next stage drops leftovers, so an error is ignored.
      await this.server(side)
        .then(async (admin) => {
          if (side === 'target') await admin.query(revokeParameterSql(login.role)).catch(() => undefined);
          await dropTransferRole(admin, login.role);
        })
        .catch(() => undefined);
    }
    await this.closeSessions([...this.sessions.values()]);
  }

  private async closeSessions(sessions: Promise<Session>[]): Promise<void> {
    const opened = await Promise.allSettled(sessions);
    await Promise.all(opened.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.close()] : [])));
  }

  private urlOf = (side: Side): string => (side === 'old' ? this.move.oldUrl : this.move.targetUrl);

  private async ownSession(side: Side, login: TransferLogin): Promise<pg.Client> {
    const url = loginUrl(this.urlOf(side), login, this.move.databaseName);
    return (await this.open(login.role, () => this.connect(url, { purpose: 'load' }))).client;
  }

  private async loaderLogin(kind: string, owner: string): Promise<{ url: string; login: TransferLogin }> {
    if (owner === platformRole) throw new Error('nothing is loaded as the superuser');
    const database = this.move.databaseName;
    const login = await this.login(`${kind} ${owner}`, 'target', (admin) =>
      makeLoader({ admin, database, tag: this.tag, owner }),
    );
    return { url: loginUrl(this.move.targetUrl, login, database), login };
  }

  private async login(
    key: string,
    side: Side,
    make: (admin: pg.Client) => Promise<TransferLogin>,
  ): Promise<TransferLogin> {
    const known = this.logins.get(key);
    if (known) return (await known).login;
    const made = (async () => ({ side, login: await make(await this.server(side)) }))();
    this.logins.set(key, made);
    return (await made).login;
  }

  private open(key: string, connect: () => Promise<Session>): Promise<Session> {
    const known = this.sessions.get(key);
    if (known) return known;
    const opened = connect();
    opened.catch(() => this.sessions.delete(key));
    this.sessions.set(key, opened);
    return opened;
  }

  /** Opens a session with durable commits. */
  private async connect(url: string, options: SessionOptions): Promise<Session> {
    const { applicationName } = this;
    const session = await openSession(url, { ...options, applicationName, signal: this.move.signal });
    await session.client.query('set synchronous_commit = on');
    return session;
  }
}

export async function withStage<T>(move: Move, work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = new Stage(move);
  try {
    return await work(stage);
  } catch (error) {
    move.signal?.throwIfAborted();
    throw error;
  } finally {
    await stage.close();
  }
}

export async function readRows<Row>(
  client: pg.ClientBase,
  schema: z.ZodType<Row>,
  sql: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return z.array(schema).parse((await client.query(sql, values)).rows);
}
