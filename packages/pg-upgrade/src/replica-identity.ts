import pg from 'pg';
import { z } from 'zod';
import { ownSchema } from './own-objects';
import { readRows } from './session';

const changedSchema = z.object({ oid: z.number(), table: z.string(), identity: z.string(), index_name: z.string().nullable() });

/** Ordinary tables whose changed rows could not be named to a subscriber: no usable key, or none chosen. */
export const withoutIdentitySql = `select c.oid, c.oid::regclass::text as table, c.relreplident as identity,
    (select x.relname from pg_catalog.pg_index i join pg_catalog.pg_class x on x.oid = i.indexrelid where i.indrelid = c.oid and i.indisreplident) as index_name
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and c.relpersistence = 'p' and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', '${ownSchema}')
    and (c.relreplident = 'n'
      or c.relreplident = 'd' and not exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary and i.indimmediate and i.indisvalid)
      or c.relreplident = 'i' and not exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisreplident and i.indisvalid))`;

const identityOf: Record<string, string> = { d: 'default', n: 'nothing', f: 'full' };

/** For the time of the move every change of a row carries the whole old row where there is no key. What it was before is noted first. */
export async function widenIdentities(old: pg.ClientBase): Promise<void> {
  for (const { oid, table, identity, index_name: indexName } of await readRows(old, changedSchema, withoutIdentitySql)) {
    await old.query('begin');
    await old.query(
      `insert into ${ownSchema}.replica_identity (relation, identity, index_name) values ($1, $2, $3) on conflict do nothing`,
      [oid, identity, indexName],
    );
    await old.query(`alter table only ${table} replica identity full`);
    await old.query('commit');
  }
}

/** Gives back what {@link widenIdentities} took. Without its notes there is nothing to do. */
export async function restoreIdentities(old: pg.ClientBase): Promise<void> {
  const there = await old.query('select from pg_catalog.pg_class where oid = pg_catalog.to_regclass($1)', [
    `${ownSchema}.replica_identity`,
  ]);
  if (there.rowCount === 0) return;
  const sql = `select r.relation as oid, c.oid::regclass::text as table, r.identity, r.index_name from ${ownSchema}.replica_identity r
    join pg_catalog.pg_class c on c.oid = r.relation`;
  for (const { oid, table, identity, index_name: indexName } of await readRows(old, changedSchema, sql)) {
    const wanted = indexName === null ? identityOf[identity] : `using index ${pg.escapeIdentifier(indexName)}`;
    await old.query('begin');
    await old.query(`alter table only ${table} replica identity ${wanted ?? 'default'}`);
    await old.query(`delete from ${ownSchema}.replica_identity where relation = $1`, [oid]);
    await old.query('commit');
  }
}
