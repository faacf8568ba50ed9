import type pg from 'pg';
import { z } from 'zod';
import { qualify } from '../dump/list-tables';
import type { LoadFinding } from './load-request';
import { type OwnedStatement, rolesOf } from './statement-owners';

/**
 * Tells whether a statement changes a right of the object's own owner. Loading rows and creating indexes and foreign
 * keys may need that right, so the statement runs afterwards.
 */
export const isOwnRight = ({ outline, text, owner }: OwnedStatement): boolean =>
  /^(?:GRANT|REVOKE) /i.test(outline) && rolesOf(text)[0] === owner;

const relationsSql = `select n.nspname as schema, c.relname as name, pg_catalog.pg_get_userbyid(c.relowner) as owner
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'S') and n.nspname !~ '^pg_'`;
const relationSchema = z.array(z.object({ schema: z.string(), name: z.string(), owner: z.string() }));

/** Returns the owners of tables and sequences, by their quoted names. */
export async function relationOwners(client: pg.ClientBase): Promise<ReadonlyMap<string, string>> {
  const rows = relationSchema.parse((await client.query(relationsSql)).rows);
  return new Map(rows.map((row) => [qualify(row), row.owner]));
}

const lackingSql = `select n.nspname as schema, pg_catalog.pg_get_userbyid(n.nspowner) as schema_owner,
    r.rolname as owner, w.wanted as right
  from (select distinct relnamespace as schema, relowner as owner from pg_catalog.pg_class where $1::name is null
    union select typnamespace, typowner from pg_catalog.pg_type where $1::name is null
    union select s.oid, o.oid from pg_catalog.pg_namespace s, pg_catalog.pg_roles o where o.rolname = $1
      and s.nspname = $2) o
  join pg_catalog.pg_namespace n on n.oid = o.schema join pg_catalog.pg_roles r on r.oid = o.owner
  cross join (values ('usage'), ('create')) w (wanted)
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not r.rolsuper
    and not pg_catalog.has_schema_privilege(r.oid, n.oid, w.wanted)`;
const lackingSchema = z.array(
  z.object({ schema: z.string(), schema_owner: z.string(), owner: z.string(), right: z.enum(['usage', 'create']) }),
);
export type SchemaRight = z.infer<typeof lackingSchema>[number];

/** Returns the rights that owners lack on the schemas of their objects, or that one owner lacks on one schema. */
export async function lackingRights(
  client: pg.ClientBase,
  one?: { owner: string; schema: string | null },
): Promise<SchemaRight[]> {
  if (one?.schema === null) return [];
  return lackingSchema.parse((await client.query(lackingSql, [one?.owner, one?.schema])).rows);
}

/** Returns the schema that an error denies, or null for another error. */
export const deniedSchema = ({ message }: Error): string | null =>
  /^permission denied for schema (.*)$/s.exec(message)?.[1] ?? null;

const definersSql = `select p.oid::text as oid, case p.prokind when 'p' then 'procedure' else 'function' end || ' '
    || pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
      pg_catalog.pg_get_function_identity_arguments(p.oid)) as object
  from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace where p.prosecdef
  and p.oid >= 16384`;
const definerSchema = z.array(z.object({ oid: z.string(), object: z.string() }));

async function definersOf(client: pg.ClientBase): Promise<Map<string, string>> {
  return new Map(definerSchema.parse((await client.query(definersSql)).rows).map(({ oid, object }) => [oid, object]));
}

/** Omits needless quotes. pg_dump also quotes names that are a keyword in its own major, but not in the server's. */
const plainNames = (text: string): string => text.replace(/"([a-z_][a-z0-9_]*)"/g, '$1');

interface Inherited {
  objects: string[];
  /** Objects that ran with the role's rights: SECURITY DEFINER functions and views. */
  definers: string[];
}

/** The most objects that a finding names. */
const namedMax = 20;
const list = (names: readonly string[]): string =>
  names.length <= namedMax
    ? names.join(', ')
    : `${names.slice(0, namedMax).join(', ')} and ${names.length - namedMax} more`;

/** The reason in the finding for a dump of format 1 or 2, which does not record owners. */
export const unknownOwners =
  'the backup does not say who owned what. A function that is SECURITY DEFINER has the rights of that owner now';

/**
 * Knows which owners of dumped objects exist on the server besides the database's owner, and records the objects of the
 * missing ones.
 */
export class OwnerRoles {
  readonly others: ReadonlySet<string>;
  private readonly gone = new Map<string, Inherited>();
  private readonly views = new Set<string>();

  constructor(here: readonly string[]) {
    this.others = new Set(here);
  }

  /** Returns the role if it exists, otherwise null, which stands for the database's owner. */
  here(role: string | null): string | null {
    return role !== null && this.others.has(role) ? role : null;
  }

  /** Creates an object of a missing role by calling `make`, and records the object for the findings. */
  async inherit(
    client: pg.ClientBase,
    { outline, object, owner }: OwnedStatement & { object: string; owner: string },
    make: () => Promise<void>,
  ): Promise<void> {
    const isDefiner = /^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) .* SECURITY DEFINER\b/i.test(outline);
    const before = isDefiner ? await definersOf(client) : new Map<string, string>();
    await make();
    if (!/^CREATE /i.test(outline)) return;
    const inherited = this.gone.get(owner) ?? { objects: [], definers: [] };
    this.gone.set(owner, inherited);
    inherited.objects.push(object);
    if (isDefiner)
      inherited.definers.push(
        ...[...(await definersOf(client))].filter(([oid]) => !before.has(oid)).map(([, made]) => made),
      );
    const rule = /^rule .* of (.*)$/.exec(object)?.[1] ?? /^(?:materialized |recursive )?view (.*)$/.exec(object)?.[1];
    if (rule !== undefined) this.views.add(rule);
    if (rule !== undefined && !object.startsWith('rule ')) inherited.definers.push(object);
  }

  /**
   * Tells whether a grant must be left out. That is a grant on a SECURITY DEFINER function or a view of a missing role,
   * because such an object now runs with the rights of the database's owner. The finding of the missing role names the
   * object.
   */
  isKeptBack(outline: string): boolean {
    const [, kind = '', object = ''] = /^GRANT .*? ON (FUNCTION|PROCEDURE|TABLE) (.*) TO [^ ]/i.exec(outline) ?? [];
    if (kind === 'TABLE') return this.views.has(object);
    const routine = plainNames(`${kind.toLowerCase()} ${object}`);
    return [...this.gone.values()].some(({ definers }) => definers.some((name) => plainNames(name) === routine));
  }

  /** Returns the statements that revoke PUBLIC's default right to run SECURITY DEFINER functions of missing roles. */
  closing(): { object: string; text: string }[] {
    const functions = [...this.gone.values()].flatMap(({ definers }) =>
      definers.filter((object) => /^(?:function|procedure) /.test(object)),
    );
    return functions.map((object) => ({ object, text: `revoke execute on ${object} from public` }));
  }

  findings(): LoadFinding[] {
    return [...this.gone].map(([role, { objects, definers }]) => {
      const ran =
        `Nobody else may use what ran with the rights of ${role}: ${list(definers)}. ` +
        'Look at it, then grant what is needed';
      const reason = `role ${role} of the backup is not here${definers.length > 0 ? `. ${ran}` : ''}`;
      return { kind: 'owner_changed', object: list(objects), reason };
    });
  }
}
