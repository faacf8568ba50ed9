import pg from 'pg';
import { z } from 'zod';
import { qualify } from '../../dump/list-tables';
import { readRows } from '../session';

const positionSchema = z.object({ name: z.string(), position: z.string() });
const namedSchema = z.object({ schema: z.string(), name: z.string() });
/** The most sequences in a statement. */
const atOnce = 500;

export interface Position {
  name: string;
  last_value: string;
  is_called: boolean;
}

const sequencesSql = `select n.nspname as schema, c.relname as name from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'S' and c.relpersistence <> 't' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::regclass
      and d.objid = c.oid and d.deptype = 'e') order by 1, 2`;

/** Returns the quoted names of the customer's sequences. */
export async function sequenceNames(client: pg.ClientBase): Promise<string[]> {
  return (await readRows(client, namedSchema, sequencesSql)).map(qualify);
}

function* slices(names: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < names.length; from += atOnce) yield names.slice(from, from + atOnce);
}

/**
 * Reads all positions in one round trip, because the customer's writes are waiting. A position is read as a row's text,
 * `(last_value,is_called)`. So no cast or function of the customer is called, whatever object has the sequence's name.
 */
export async function readPositions(client: pg.ClientBase, names: readonly string[]): Promise<Position[]> {
  const positions: Position[] = [];
  for (const some of slices(names)) {
    const each = some.map(
      (name) =>
        `select ${pg.escapeLiteral(name)} as name,
            pg_catalog.textin(pg_catalog.record_out(row(s.last_value, s.is_called))) as position from ${name} s`,
    );
    for (const { name, position } of await readRows(client, positionSchema, each.join(' union all '))) {
      const form = /^\((-?\d+),([tf])\)$/.exec(position);
      if (form?.[1] === undefined) throw new Error(`${name} is no sequence`);
      positions.push({ name, last_value: form[1], is_called: form[2] === 't' });
    }
  }
  return positions;
}

/** Sets the target's sequences to the old positions. `names` are listed before the pause, to shorten it. */
export async function copySequences(
  old: pg.ClientBase,
  target: pg.ClientBase,
  names: readonly string[],
): Promise<void> {
  const positions = await readPositions(old, names);
  for (let from = 0; from < positions.length; from += atOnce) {
    const some = positions.slice(from, from + atOnce);
    const sql = `select pg_catalog.setval(name::regclass, value, called)
      from unnest($1::text[], $2::bigint[], $3::boolean[]) p (name, value, called)`;
    await target.query(sql, [some.map((p) => p.name), some.map((p) => p.last_value), some.map((p) => p.is_called)]);
  }
}
