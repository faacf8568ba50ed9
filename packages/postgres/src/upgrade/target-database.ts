import pg from 'pg';
import { z } from 'zod';
import { type Grant, grantSchema } from '../dump/database-properties';
import type { LoadOwners } from '../load/load-sessions';
import { lendRights } from '../load/statement-owners';
import { runStatement } from '../session/session';
import { isOwnRoleSql } from './copy/own-objects';
import { databaseSettingStatements, syncRoles } from './copy/roles';
import { readRows, type Stage, UpgradeError } from './session';

const name = pg.escapeIdentifier;
const databaseSchema = z.object({ owner: z.string(), comment: z.string().nullable(), limit: z.number() });

const databaseSql = `select pg_catalog.pg_get_userbyid(datdba) as owner,
    pg_catalog.shobj_description(oid, 'pg_database') as comment, datconnlimit as limit
  from pg_catalog.pg_database where datname = $1`;
/** Reads the customer's grants, without the platform's. */
const grantsSql = `select r.rolname as grantee, a.privilege_type as privilege,
    a.is_grantable as grantable
  from pg_catalog.pg_database d
  cross join lateral pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a
  left join pg_catalog.pg_roles r on r.oid = a.grantee where d.datname = $1 and (a.grantee = 0 or not ${isOwnRoleSql})
  order by 1, 2`;

/** Returns a role's name in SQL. Null is PUBLIC. */
const who = (grantee: string | null): string => (grantee === null ? 'public' : name(grantee));

async function readDatabase(server: pg.ClientBase, databaseName: string): Promise<z.infer<typeof databaseSchema>> {
  const [found] = await readRows(server, databaseSchema, databaseSql, [databaseName]);
  if (found === undefined) throw new Error('there is no such database');
  return found;
}

/**
 * Creates an empty database with the old database's name and comment. Only the platform may enter it before the
 * cutover. {@link ownDatabase} sets its owner when the roles exist.
 */
export async function createTargetDatabase(stage: Stage): Promise<void> {
  const { databaseName } = stage.move;
  const [old, target] = [await stage.server('old'), await stage.server('target')];
  const { comment } = await readDatabase(old, databaseName);
  await target.query(`create database ${name(databaseName)} template template0 encoding 'UTF8'`);
  await target.query(`revoke all on database ${name(databaseName)} from public`);
  if (comment !== null) await target.query(`comment on database ${name(databaseName)} is ${pg.escapeLiteral(comment)}`);
}

/** Gives the database its owner, who may create schemas but may not connect yet. */
export async function ownDatabase(stage: Stage): Promise<void> {
  const { databaseName } = stage.move;
  const { owner } = await readDatabase(await stage.server('old'), databaseName);
  const target = await stage.server('target');
  await target.query(`alter database ${name(databaseName)} owner to ${name(owner)}`);
  await target.query(`revoke connect, temporary on database ${name(databaseName)} from ${name(owner)}`);
}

/** The facts about a database that {@link lockOut} destroys. */
export interface Opening {
  /**
   * The statements that let customers in, on the target or on the old database. Running them again has no further
   * effect.
   */
  opening: string[];
  /** The customer's grants on the database. */
  grants: Grant[];
}

/** Reads the old database's present grants and settings. The statements set the given connection limit. */
export async function readOpening(old: pg.ClientBase, databaseName: string, connectionLimit: number): Promise<Opening> {
  const database = name(databaseName);
  const grants = await readRows(old, grantSchema, grantsSql, [databaseName]);
  const { owner } = await readDatabase(old, databaseName);
  const grantees = new Set([null, owner, ...grants.map(({ grantee }) => grantee)]);
  const opening = [
    ...[...grantees].map((grantee) => `revoke all on database ${database} from ${who(grantee)} cascade`),
    ...grants.map(
      ({ grantee, privilege, grantable }) =>
        `grant ${privilege} on database ${database} to ${who(grantee)}${grantable ? ' with grant option' : ''}`,
    ),
    `alter database ${database} connection limit ${Math.trunc(connectionLimit)}`,
    ...(await databaseSettingStatements(old, databaseName)),
  ];
  return { opening, grants };
}

/** Runs the statements in one transaction, so that customers are let in completely or not at all. */
export async function openDatabase(server: pg.ClientBase, statements: readonly string[]): Promise<void> {
  await server.query('set synchronous_commit = on');
  // One round trip is used, because clients are waiting. Names and values of settings are quoted.
  await server.query(['begin', ...statements, 'commit'].join('; '));
}

/** Returns the database's connection limit, or -1 if only the server limits its sessions. */
export async function readConnectionLimit(server: pg.ClientBase, databaseName: string): Promise<number> {
  const { limit } = await readDatabase(server, databaseName);
  // A database that an older version of Drydock has closed to customers has the limit 0.
  return limit > 0 ? limit : -1;
}

/** Removes the customer's connection limit during the move, because that limit counts the platform's roles as well. */
export async function liftConnectionLimit(server: pg.ClientBase, databaseName: string): Promise<void> {
  const { limit } = await readDatabase(server, databaseName);
  if (limit >= 0) await server.query(`alter database ${name(databaseName)} connection limit -1`);
}

/**
 * Runs the statements of {@link readOpening} on the target and rolls them back, because they must not fail after the
 * switch. Throws `statement_failed`.
 */
export async function rehearseOpening(stage: Stage): Promise<void> {
  const { databaseName } = stage.move;
  const target = await stage.server('target');
  await target.query('begin');
  try {
    const { opening } = await readOpening(await stage.server('old'), databaseName, -1);
    for (const statement of opening) await runStatement(target, statement);
  } catch (error) {
    throw new UpgradeError('statement_failed', 'a setting of the database', {
      cause: error,
      object: `DATABASE ${databaseName}`,
    });
  } finally {
    await target.query('rollback');
  }
}

const ownerSql = 'select pg_catalog.pg_get_userbyid(datdba) as owner from pg_catalog.pg_database where datname = $1';
const ownerSchema = z.object({ owner: z.string() });

/**
 * Creates the roles of the serving instance without memberships, and an empty database with the same owner. An existing
 * target database is dropped first. The owner may create no roles until the switch, because a loader acts with the
 * owner's rights. Resolves with the owner.
 */
export async function makeEmptyRestored(stage: Stage): Promise<string> {
  const { databaseName } = stage.move;
  const database = name(databaseName);
  const [old, target] = [await stage.server('old'), await stage.server('target')];
  const [found] = await readRows(old, ownerSchema, ownerSql, [databaseName]);
  if (found === undefined) throw new Error('there is no such database');
  const { owner } = found;
  await target.query(`drop database if exists ${database} with (force)`);
  await target.query(`create database ${database} template template0 encoding 'UTF8'`);
  await target.query(`revoke connect, temporary on database ${database} from public`);
  await syncRoles(old, target, databaseName, { withMemberships: false, withDatabase: false });
  await target.query(`alter database ${database} owner to ${name(owner)}`);
  await target.query(`alter role ${name(owner)} nocreaterole`);
  return owner;
}

const findSql = `select r.rolname as owner from pg_catalog.pg_roles r
  where r.rolname = any ($1) and not r.rolsuper and r.rolname !~ '^pg_' and not ${isOwnRoleSql}`;

/**
 * Returns the owners for the load of a restore. None of them may create roles or bypass row security until the switch,
 * which gives them these rights back.
 */
export function ownersOf(stage: Stage): LoadOwners {
  const found = new Set<string>();
  const close = async (): Promise<void> => {
    const target = await stage.server('target');
    for (const owner of found) await target.query(`alter role ${name(owner)} nocreaterole nobypassrls`);
  };
  return {
    async find(names) {
      const owners = (await readRows(await stage.server('target'), ownerSchema, findSql, [[...names]])).map(
        ({ owner }) => owner,
      );
      for (const owner of owners) found.add(owner);
      await close();
      return owners;
    },
    urlOf: (owner) => stage.loaderUrl(owner),
    lend: async (owner, others, work) => lendRights(await stage.server('target'), owner, others, work),
    async join() {
      const { databaseName } = stage.move;
      // A role that the backup's policies name must stay.
      await syncRoles(await stage.server('old'), await stage.server('target'), databaseName, {
        dropsGone: false,
        withDatabase: false,
      });
      const target = await stage.server('target');
      const [{ owner } = { owner: '' }] = await readRows(target, ownerSchema, ownerSql, [databaseName]);
      if (owner !== '') found.add(owner);
      await close();
    },
  };
}

/** Creates missing roles without rights, so that policies can name them. */
export async function makeMentionedRoles(server: pg.ClientBase, roles: readonly string[]): Promise<void> {
  for (const role of roles) {
    const { rowCount } = await server.query('select from pg_catalog.pg_roles where rolname = $1', [role]);
    if (rowCount === 0) await server.query(`create role ${name(role)} nologin`);
  }
}
