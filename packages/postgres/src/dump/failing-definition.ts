import { z } from 'zod';
import { openSession } from '../session/session';
import { TransferError } from '../session/transfer-error';

/** The catalogue that lists each kind of object, and the function with which pg_dump reads a definition. */
const definitions: readonly (readonly [catalogue: string, oids: string, definition: string])[] = [
  ['pg_class', "select oid from pg_catalog.pg_class where relkind in ('v', 'm')", 'pg_catalog.pg_get_viewdef($1::oid)'],
  [
    'pg_rewrite',
    "select oid from pg_catalog.pg_rewrite where rulename <> '_RETURN'",
    'pg_catalog.pg_get_ruledef($1::oid)',
  ],
  ['pg_class', 'select indexrelid as oid from pg_catalog.pg_index', 'pg_catalog.pg_get_indexdef($1::oid)'],
  ['pg_constraint', 'select oid from pg_catalog.pg_constraint', 'pg_catalog.pg_get_constraintdef($1::oid)'],
  [
    'pg_trigger',
    'select oid from pg_catalog.pg_trigger where not tgisinternal',
    'pg_catalog.pg_get_triggerdef($1::oid)',
  ],
  [
    'pg_proc',
    "select oid from pg_catalog.pg_proc where prokind in ('f', 'p')",
    'pg_catalog.pg_get_functiondef($1::oid)',
  ],
  ['pg_statistic_ext', 'select oid from pg_catalog.pg_statistic_ext', 'pg_catalog.pg_get_statisticsobjdef($1::oid)'],
  [
    'pg_attrdef',
    'select oid from pg_catalog.pg_attrdef',
    '(select pg_catalog.pg_get_expr(adbin, adrelid) from pg_catalog.pg_attrdef where oid = $1::oid)',
  ],
  [
    'pg_policy',
    'select oid from pg_catalog.pg_policy',
    `(select pg_catalog.concat(pg_catalog.pg_get_expr(polqual, polrelid),
        pg_catalog.pg_get_expr(polwithcheck, polrelid)) from pg_catalog.pg_policy where oid = $1::oid)`,
  ],
];
/** The first oid of user objects. Definitions of the system have smaller ones, and none of them fails. */
const firstOid = 16_384;
const listedSchema = z.array(z.object({ oid: z.string(), object: z.string() }));

const isSame = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

/**
 * The object whose definition Postgres could not write: `view reports.monthly`. pg_dump asks for many at once and knows
 * only numbers. So each is asked for again, on its own, until one fails in the same way. Null when none does. `code` is
 * a SQLSTATE, or the code of a TransferError.
 */
export async function findFailingDefinition(
  url: string,
  code: string,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const { client, close } = await openSession(url, { purpose: 'read', signal });
  try {
    for (const [catalogue, oids, definition] of definitions) {
      const listed = await client.query(
        `select oid::text, pg_catalog.pg_describe_object('pg_catalog.${catalogue}'::regclass, oid, 0) as object
          from (${oids}) o where oid >= ${firstOid}`,
      );
      for (const { oid, object } of listedSchema.parse(listed.rows)) {
        try {
          await client.query(`select ${definition}`, [oid]);
        } catch (error) {
          if (isSame(error, code)) return object;
          if (error instanceof TransferError) return null;
        }
      }
    }
    return null;
  } finally {
    await close();
  }
}
