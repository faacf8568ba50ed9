import pg from 'pg';
import { z } from 'zod';
import { runWithCustomersPath } from '../dump/customer-path';
import { runStatement } from '../session/session';

const name = pg.escapeIdentifier;

/**
 * Returns SQL that tells whether an object calls a function of the customer, by name or through an operator. Functions
 * of extensions do not count.
 */
export const callsOwnCodeSql = (catalogue: string, oid: string): string =>
  `exists (select from pg_catalog.pg_depend used
      left join pg_catalog.pg_operator sign on used.refclassid = 'pg_catalog.pg_operator'::regclass
      and sign.oid = used.refobjid
      join pg_catalog.pg_proc code on code.oid = case used.refclassid when 'pg_catalog.pg_proc'::regclass then
        used.refobjid else sign.oprcode end
      where used.classid = 'pg_catalog.${catalogue}'::regclass and used.objid = ${oid} and code.oid >= 16384
        and used.refclassid in ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass)
        and not exists (select from pg_catalog.pg_depend part
          where part.classid = 'pg_catalog.pg_proc'::regclass and part.objid = code.oid and part.deptype = 'e'))`;

/**
 * Selects the CHECK constraints of tables and domains that call functions of the customer. A load drops them before the
 * rows and adds them afterwards, because such a function may read a table that is filled later.
 *
 * A parent table comes before the tables that inherit from it, because changing the parent's constraint changes theirs.
 * An inherited constraint is selected only for partitions: pg_dump gives a partition its own copy and attaches the
 * partition later.
 */
const checksSql = `select k.conname as name, pg_catalog.pg_get_constraintdef(k.oid) as definition,
    k.convalidated as validated,
    pg_catalog.obj_description(k.oid, 'pg_constraint') as comment, k.contypid <> 0 as is_domain,
      k.conislocal as is_local,
    coalesce(cn.nspname, tn.nspname) as schema, coalesce(c.relname, t.typname) as owner,
    pg_catalog.pg_get_userbyid(coalesce(c.relowner, t.typowner)) as role
  from pg_catalog.pg_constraint k
  left join pg_catalog.pg_class c on c.oid = k.conrelid left join pg_catalog.pg_namespace cn on cn.oid = c.relnamespace
  left join pg_catalog.pg_type t on t.oid = k.contypid left join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
  where k.contype = 'c' and (k.conislocal or c.relispartition)
    and ${callsOwnCodeSql('pg_constraint', 'k.oid')}
  order by (with recursive above (oid) as (select inhparent from pg_catalog.pg_inherits where inhrelid = k.conrelid
      union select i.inhparent from pg_catalog.pg_inherits i join above on i.inhrelid = above.oid) select count(*)
        from above), k.oid`;
const checkSchema = z.object({
  name: z.string(),
  definition: z.string(),
  validated: z.boolean(),
  comment: z.string().nullable(),
  is_domain: z.boolean(),
  is_local: z.boolean(),
  schema: z.string(),
  owner: z.string(),
  role: z.string(),
});
export type DeferredCheck = z.infer<typeof checkSchema>;

const placeOf = (check: DeferredCheck): string => `${name(check.schema)}.${name(check.owner)}`;
const ownerOf = (check: DeferredCheck): string => `${check.is_domain ? 'domain' : 'table'} ${placeOf(check)}`;

/** Returns the constraints of `checksSql` that Postgres enforces. */
export async function readChecks(client: pg.ClientBase): Promise<DeferredCheck[]> {
  const checks = z.array(checkSchema).parse((await client.query(checksSql)).rows);
  return checks.filter(({ definition }) => !definition.endsWith(' NOT ENFORCED'));
}

export const dropStatement = (check: DeferredCheck): string =>
  `alter ${ownerOf(check)} drop constraint ${name(check.name)}`;

/** Returns the statements that add a check and its comment. Existing rows are not checked. */
export function addStatements(check: DeferredCheck): string[] {
  const definition = check.definition.replace(/ NOT VALID$/, '');
  const add = `alter ${ownerOf(check)} add constraint ${name(check.name)} ${definition} not valid`;
  if (check.comment === null) return [add];
  const place = check.is_domain ? ownerOf(check) : placeOf(check);
  return [add, `comment on constraint ${name(check.name)} on ${place} is ${pg.escapeLiteral(check.comment)}`];
}

export const describeCheck = (check: DeferredCheck): string => `constraint ${name(check.name)} of ${ownerOf(check)}`;

/**
 * Drops the checks, except inherited ones, which go with the parent's check. Returns the dropped checks. `run` runs a
 * statement as the owner of the check's table or domain.
 */
export async function takeOffChecks(
  client: pg.ClientBase,
  run: (check: DeferredCheck, statement: string) => Promise<void>,
): Promise<DeferredCheck[]> {
  const checks = (await readChecks(client)).filter((check) => check.is_local);
  for (const check of checks) await run(check, dropStatement(check));
  return checks;
}

export async function putBackCheck(client: pg.ClientBase, check: DeferredCheck): Promise<void> {
  for (const statement of addStatements(check)) await runStatement(client, statement);
}

export const validationOf = (check: DeferredCheck): string =>
  `ALTER ${check.is_domain ? 'DOMAIN' : 'TABLE'} ${placeOf(check)} VALIDATE CONSTRAINT ${name(check.name)}`;

export const validateCheck = (client: pg.ClientBase, check: DeferredCheck, searchPath: string): Promise<void> =>
  runWithCustomersPath(client, validationOf(check), searchPath);
