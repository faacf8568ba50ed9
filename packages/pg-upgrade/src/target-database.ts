import pg from 'pg';
import { z } from 'zod';
import { readRows } from './session';

const name = pg.escapeIdentifier;
const ownerSchema = z.object({ owner: z.string() });
const grantSchema = z.object({ grantee: z.string().nullable(), privilege: z.string(), is_grantable: z.boolean() });

const ownerSql = 'select pg_catalog.pg_get_userbyid(datdba) as owner from pg_catalog.pg_database where datname = $1';
const grantsSql = `select case when a.grantee <> 0 then pg_catalog.pg_get_userbyid(a.grantee) end as grantee, a.privilege_type as privilege, a.is_grantable
  from pg_catalog.pg_database d cross join lateral pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a
  where d.datname = $1 order by 1, 2`;

/** An empty database of the name, which nobody but the platform may enter: not before the cutover has let them in. */
export async function createTargetDatabase(server: pg.ClientBase, databaseName: string): Promise<void> {
  await server.query(`drop database if exists ${name(databaseName)} with (force)`);
  await server.query(`create database ${name(databaseName)} template template0 encoding 'UTF8' connection limit 0`);
  await server.query(`revoke all on database ${name(databaseName)} from public`);
}

/** The database's owner and who may connect to it. The roles must be there. Again is harmless. */
export async function copyDatabaseGrants(old: pg.ClientBase, target: pg.ClientBase, databaseName: string): Promise<void> {
  const database = name(databaseName);
  const owners = [old, target].map((server) => readRows(server, ownerSchema, ownerSql, [databaseName]));
  const [[wantedOwner], [owner]] = await Promise.all([owners[0] ?? [], owners[1] ?? []]);
  if (wantedOwner && wantedOwner.owner !== owner?.owner)
    await target.query(`alter database ${database} owner to ${name(wantedOwner.owner)}`);
  const keyOf = (grant: z.infer<typeof grantSchema>): string => JSON.stringify(grant);
  const wanted = await readRows(old, grantSchema, grantsSql, [databaseName]);
  const there = new Set((await readRows(target, grantSchema, grantsSql, [databaseName])).map(keyOf));
  const wantedKeys = new Set(wanted.map(keyOf));
  if (there.size === wantedKeys.size && wanted.every((grant) => there.has(keyOf(grant)))) return;
  const grantees = new Set([...there].map((key) => grantSchema.parse(JSON.parse(key)).grantee));
  const who = (grantee: string | null): string => (grantee === null ? 'public' : name(grantee));
  const revokes = [...grantees].map((grantee) => `revoke all on database ${database} from ${who(grantee)} cascade`);
  const grants = wanted.map(
    ({ grantee, privilege, is_grantable: isGrantable }) =>
      `grant ${privilege} on database ${database} to ${who(grantee)}${isGrantable ? ' with grant option' : ''}`,
  );
  await target.query(['begin', ...revokes, ...grants, 'commit'].join('; '));
}
