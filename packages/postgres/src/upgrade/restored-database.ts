import pg from 'pg';
import { z } from 'zod';
import type { LoadOwners } from '../load/load-sessions';
import { lendRights } from '../load/statement-owners';
import { isOwnRoleSql } from './copy/own-objects';
import { syncRoles } from './copy/roles';
import { readRows, type Stage } from './session';

const name = pg.escapeIdentifier;
const ownerSql = 'select pg_catalog.pg_get_userbyid(datdba) as owner from pg_catalog.pg_database where datname = $1';
const ownerSchema = z.object({ owner: z.string() });

/**
 * Creates the roles of the serving instance without memberships, and an empty database with the same owner. It always
 * starts from an empty target. The owner may create no roles until the switch, because a loader must not be able to.
 * Resolves with the owner.
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

/** Returns the owners of a restore's objects. None may create roles until the switch, which restores their rights. */
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
