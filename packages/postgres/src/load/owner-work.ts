import pg from 'pg';
import { isUndefined, lendCustomersPath, runWithCustomersPath } from '../dump/customer-path';
import { runStatement } from '../session/session';
import type { TimeBudget } from '../session/time-budget';
import type { LoadOwners, LoadSessions } from './load-sessions';
import { deniedSchema, lackingRights, type OwnerRoles, type SchemaRight } from './owner-roles';
import { isRefusedByPostgres } from './statement-owners';

const name = pg.escapeIdentifier;

interface OwnerWorkOptions {
  sessions: LoadSessions;
  budget: TimeBudget;
  roles: OwnerRoles;
  /** The owner of the database. */
  owner: string;
  /** Undefined if the database's owner does everything. */
  owners: LoadOwners | undefined;
}

interface Made {
  object: string;
  text: string;
  /** True if the statement runs no code of the customer, so that rights may be lent for it. */
  borrows: boolean;
  searchPath: string;
}

/**
 * Runs each owner's work in a session of that owner. An object may need rights that its owner has lost since the object
 * was created. Lost rights on schemas are lent to the owner until rows and indexes exist. If these rights are not
 * enough, the owner gets the rights of all other owners for a single statement, which must run no code of the customer.
 */
export class OwnerWork {
  private readonly options: OwnerWorkOptions;
  private readonly lent: SchemaRight[] = [];

  constructor(options: OwnerWorkOptions) {
    this.options = options;
  }

  /** Runs work as a role. Null stands for the database's owner. */
  async run(
    role: string | null,
    object: string,
    work: (client: pg.Client) => Promise<void>,
    borrows = true,
  ): Promise<void> {
    const { sessions, budget, owners, roles } = this.options;
    const client = await sessions.clientOf(role);
    try {
      await budget.spend(object, work(client));
    } catch (error) {
      if (owners === undefined || !isRefusedByPostgres(error)) throw error;
      const owner = role ?? this.options.owner;
      const lacking = await lackingRights(sessions.ownClient(), { owner, schema: deniedSchema(error) });
      if (lacking.length > 0) {
        await this.lend(lacking);
        return this.run(role, object, work, borrows);
      }
      if (!borrows) throw error;
      const others = [...roles.others, this.options.owner].filter((other) => other !== owner);
      await owners.lend(owner, others, () => budget.spend(object, work(client)));
    }
  }

  /**
   * Runs a statement with {@link runWithCustomersPath}. If a name is still undefined, sets the customer's path in the
   * functions of all other owners as well, runs the statement again, and resets these functions.
   */
  async make(role: string | null, { object, text, borrows, searchPath }: Made): Promise<void> {
    const { others } = this.options.roles;
    const run = (): Promise<void> =>
      this.run(role, object, (client) => runWithCustomersPath(client, text, searchPath), borrows);
    try {
      await run();
    } catch (error) {
      if (others.size === 0 || !isUndefined(error)) throw error;
      const takeBack: (() => Promise<void>)[] = [];
      for (const other of [null, ...others].filter((owner) => owner !== role)) {
        await this.run(other, object, async (client) => {
          const undo = await lendCustomersPath(client, searchPath);
          takeBack.push(() => this.run(other, object, undo));
        });
      }
      try {
        await run();
      } finally {
        for (const undo of takeBack) await undo();
      }
    }
  }

  /**
   * Makes a role the owner of the schema `public`. Null stands for the database's owner, who takes over the existing
   * schema. For any other role the schema is dropped, and the role creates it again, because only a member of that role
   * could hand an existing schema to it.
   */
  async ownPublic(role: string | null): Promise<void> {
    const object = 'schema public';
    const run = (runner: string | null, text: string): Promise<void> =>
      this.run(runner, object, (client) => runStatement(client, text));
    if (role === null) return run(null, `alter ${object} owner to ${name(this.options.owner)}`);
    await run(null, `drop ${object}`);
    await run(role, `create ${object}`);
    await run(role, `grant usage on ${object} to public`);
    await run(role, `comment on ${object} is 'standard public schema'`);
  }

  /** Lends every owner the rights that it lacks on the schemas of its objects. */
  async lendSchemas(): Promise<void> {
    const { owners, sessions } = this.options;
    if (owners !== undefined) await this.lend(await lackingRights(sessions.ownClient()));
  }

  async takeBackSchemas(): Promise<void> {
    for (const right of this.lent.splice(0)) await this.change(right, 'revoke', 'from');
  }

  private async lend(lacking: readonly SchemaRight[]): Promise<void> {
    for (const right of lacking) {
      await this.change(right, 'grant', 'to');
      this.lent.push(right);
    }
  }

  private change(
    { schema, schema_owner: giver, owner, right }: SchemaRight,
    verb: string,
    towards: string,
  ): Promise<void> {
    const object = `schema ${name(schema)}`;
    const text = `${verb} ${right} on ${object} ${towards} ${name(owner)}`;
    return this.run(this.options.roles.here(giver), object, (client) => runStatement(client, text), false);
  }
}
