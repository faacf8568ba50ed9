import { z } from 'zod';
import { readChecks } from '../../load/deferred-checks';
import { readRows, type Stage } from '../session';

const constraintSchema = z.object({ schema: z.string(), owner: z.string(), name: z.string() });
export type ValidatedCheck = z.infer<typeof constraintSchema>;

const places = `left join pg_catalog.pg_class c on c.oid = k.conrelid
  left join pg_catalog.pg_type t on t.oid = k.contypid
  join pg_catalog.pg_namespace n on n.oid = coalesce(c.relnamespace, t.typnamespace)`;
const validatedSql = `select n.nspname as schema, coalesce(c.relname, t.typname) as owner, k.conname as name
  from pg_catalog.pg_constraint k ${places} where k.contype = 'c' and k.convalidated and k.conname = any ($1::text[])`;
const markSql = `update pg_catalog.pg_constraint set convalidated = true where contype = 'c' and not convalidated
  and oid in (
  select k.oid from unnest($1::text[], $2::text[], $3::text[]) w (schema, owner, name)
  join pg_catalog.pg_constraint k on k.conname = w.name ${places} where n.nspname = w.schema
    and coalesce(c.relname, t.typname) = w.owner)`;

/**
 * Reads the CHECKs that hold for every row of the old database and that the new database gets without a check of its
 * rows. Those of tables that inherit them are among them.
 */
export async function readValidatedChecks(stage: Stage): Promise<ValidatedCheck[]> {
  const reader = await stage.reader('old');
  const names = (await readChecks(reader)).map(({ name }) => name);
  return names.length === 0 ? [] : readRows(reader, constraintSchema, validatedSql, [names]);
}

/**
 * Marks the new database's CHECKs as validated where the old catalogue does, as pg_upgrade does: the rows are the same,
 * and were checked when they were written. Checking them again would call the customer's functions for every row. Those
 * may give another result today, and the pause would last as long as that takes.
 */
export async function markValidated(stage: Stage, checks: readonly ValidatedCheck[]): Promise<void> {
  if (checks.length === 0) return;
  const columns = [
    checks.map(({ schema }) => schema),
    checks.map(({ owner }) => owner),
    checks.map(({ name }) => name),
  ];
  await (await stage.guardian('target')).query(markSql, columns);
}
