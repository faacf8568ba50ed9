import {
  dropTransferRole,
  grantConnect,
  loginUrl,
  makeLoader,
  makeReader,
  sweepTransferRoles,
  type TransferLogin,
} from '@drydock/postgres';
import type pg from 'pg';

/** The login for a load, and the role that the load acts as. */
export interface LoaderAccess {
  url: string;
  role: string;
}

/**
 * Makes the roles by which a release's database is dumped and loaded. A role is never the superuser, and never the
 * site's own login, whose password the customer knows. Only the site agent and its jobs get the passwords of these
 * roles. A site agent that starts again makes new roles.
 */
export class TransferAccess {
  private readonly connect: () => Promise<pg.PoolClient>;
  private readonly serverUrl: string;
  private readonly tag: string;
  private readonly readers = new Map<string, Promise<TransferLogin>>();
  private readonly loaders = new Map<string, Promise<TransferLogin>>();
  /** The roles that may still exist, by database. */
  private readonly roles = new Map<string, Set<string>>();

  /** `connect` opens a superuser's session. `tag` is a name that only this site agent uses, the same at every start. */
  constructor(connect: () => Promise<pg.PoolClient>, serverUrl: string, tag: string) {
    this.connect = connect;
    this.serverUrl = serverUrl;
    this.tag = tag;
  }

  /** Drops the roles that an earlier site agent has left. */
  sweep(): Promise<void> {
    return this.withAdmin((admin) => sweepTransferRoles(admin, this.tag));
  }

  /** Returns the URL for a role that reads everything in the database and changes nothing. */
  async readerUrl(database: string): Promise<string> {
    const login = await this.remember(this.readers, database, (admin) =>
      makeReader({ admin, database, tag: this.tag }),
    );
    // The database's owner may have revoked the role's right to connect since the role was made.
    await this.withAdmin((admin) => grantConnect(admin, login.role, database));
    return loginUrl(this.serverUrl, login, database);
  }

  /** Makes a role that acts as the owner, for one load. {@link dropLoader} ends it. */
  async openLoader(database: string, owner: string): Promise<LoaderAccess> {
    const login = await this.remember(this.loaders, database, (admin) =>
      makeLoader({ admin, database, owner, tag: this.tag }),
    );
    return { url: loginUrl(this.serverUrl, login, database), role: owner };
  }

  /** Whether a load is running. A load has no session at times, so the list of sessions alone does not show it. */
  get isLoading(): boolean {
    return this.loaders.size > 0;
  }

  async dropLoader(database: string): Promise<void> {
    const login = await this.loaders.get(database)?.catch(() => null);
    this.loaders.delete(database);
    if (login) await this.drop(database, login.role);
  }

  /**
   * Drops all roles of a database. Call this after the database was dropped. A hostile load may have given a role
   * rights in the database, and Postgres does not drop a role with rights.
   */
  async forget(database: string): Promise<void> {
    this.readers.delete(database);
    this.loaders.delete(database);
    for (const role of this.roles.get(database) ?? []) await this.drop(database, role);
  }

  private async drop(database: string, role: string): Promise<void> {
    const isGone = await this.withAdmin((admin) => dropTransferRole(admin, role));
    const roles = this.roles.get(database);
    if (isGone) roles?.delete(role);
    if (roles?.size === 0) this.roles.delete(database);
  }

  private remember(
    logins: Map<string, Promise<TransferLogin>>,
    database: string,
    make: (admin: pg.PoolClient) => Promise<TransferLogin>,
  ): Promise<TransferLogin> {
    const known = logins.get(database);
    if (known !== undefined) return known;
    const made = this.withAdmin(make).then((login) => {
      this.roles.set(database, (this.roles.get(database) ?? new Set()).add(login.role));
      return login;
    });
    logins.set(database, made);
    made.catch(() => logins.delete(database));
    return made;
  }

  private async withAdmin<T>(work: (admin: pg.PoolClient) => Promise<T>): Promise<T> {
    const admin = await this.connect();
    try {
      return await work(admin);
    } finally {
      admin.release();
    }
  }
}
