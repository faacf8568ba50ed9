import pg from 'pg';
import { z } from 'zod';
import { runWithCustomersPath } from '../dump/customer-path';
import { runStatement } from '../session/session';

const name = pg.escapeIdentifier;

/**
 * CHECK constraints, of tables and of domains, that call functions of the customer's own. Such a function may read a table that is filled later, so these are taken off
 * before the rows come, and put back when all are there.
 */
const checksSql = `select k.oid::bigint as oid, k.conname as name, pg_catalog.pg_get_constraintdef(k.oid) as definition, k.convalidated as validated,
    pg_catalog.obj_description(k.oid, 'pg_constraint') as comment, k.contypid <> 0 as is_domain,
    coalesce(cn.nspname, tn.nspname) as schema, coalesce(c.relname, t.typname) as owner
  from pg_catalog.pg_constraint k
  left join pg_catalog.pg_class c on c.oid = k.conrelid left join pg_catalog.pg_namespace cn on cn.oid = c.relnamespace
  left join pg_catalog.pg_type t on t.oid = k.contypid left join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
  where k.contype = 'c' and k.coninhcount = 0
    and exists (select from pg_catalog.pg_depend d join pg_catalog.pg_proc p on p.oid = d.refobjid
      where d.classid = 'pg_catalog.pg_constraint'::regclass and d.objid = k.oid and d.refclassid = 'pg_catalog.pg_proc'::regclass
        and not exists (select from pg_catalog.pg_depend e where e.classid = 'pg_catalog.pg_proc'::regclass and e.objid = p.oid and e.deptype = 'e'))
  order by k.oid`;
const checkSchema = z.object({
  name: z.string(),
  definition: z.string(),
  validated: z.boolean(),
  comment: z.string().nullable(),
  is_domain: z.boolean(),
  schema: z.string(),
  owner: z.string(),
});
export type DeferredCheck = z.infer<typeof checkSchema>;

const ownerOf = (check: DeferredCheck): string => `${check.is_domain ? 'domain' : 'table'} ${name(check.schema)}.${name(check.owner)}`;

/** What a person looks for. */
export const describeCheck = (check: DeferredCheck): string => `constraint ${name(check.name)} of ${ownerOf(check)}`;

export async function takeOffChecks(client: pg.ClientBase): Promise<DeferredCheck[]> {
  const checks = z.array(checkSchema).parse((await client.query(checksSql)).rows);
  for (const check of checks) await runStatement(client, `alter ${ownerOf(check)} drop constraint ${name(check.name)}`);
  return checks;
}

/** Puts one back for rows to come, and does not look at those that are there. */
export async function putBackCheck(client: pg.ClientBase, check: DeferredCheck): Promise<void> {
  const definition = check.definition.replace(/ NOT VALID$/, '');
  await runStatement(client, `alter ${ownerOf(check)} add constraint ${name(check.name)} ${definition} not valid`);
  if (check.comment === null) return;
  const place = check.is_domain ? `domain ${name(check.schema)}.${name(check.owner)}` : `${name(check.schema)}.${name(check.owner)}`;
  await runStatement(client, `comment on constraint ${name(check.name)} on ${place} is ${pg.escapeLiteral(check.comment)}`);
}

/** Looks at the rows that are there. */
export const validateCheck = (client: pg.ClientBase, check: DeferredCheck, searchPath: string): Promise<void> =>
  runWithCustomersPath(client, `alter ${ownerOf(check)} validate constraint ${name(check.name)}`, searchPath);
