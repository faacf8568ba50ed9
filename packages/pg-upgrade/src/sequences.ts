import { listSequences, qualify } from '@drydock/pg-transfer/list-tables';
import pg from 'pg';
import { z } from 'zod';
import { ownSchema } from './own-objects';
import { readRows } from './session';

const positionSchema = z.object({ name: z.string(), last_value: z.string(), is_called: z.boolean() });
/** Of one statement: a database with more sequences takes several. */
const atOnce = 500;

export type Position = z.infer<typeof positionSchema>;

/** Quoted names of the customer's sequences. */
export async function sequenceNames(client: pg.ClientBase): Promise<string[]> {
  return (await listSequences(client)).filter(({ schema }) => schema !== ownSchema).map(qualify);
}

function* slices(names: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < names.length; from += atOnce) yield names.slice(from, from + atOnce);
}

/** Every position in one round trip: the writes of a customer wait for it. */
export async function readPositions(client: pg.ClientBase, names: readonly string[]): Promise<Position[]> {
  const positions: Position[] = [];
  for (const some of slices(names)) {
    const each = some.map((name) => `select ${pg.escapeLiteral(name)} as name, last_value::text, is_called from ${name}`);
    positions.push(...(await readRows(client, positionSchema, each.join(' union all '))));
  }
  return positions;
}

/** Sets the target's sequences to the old one's positions. `names` were listed before, so that listing costs no pause. */
export async function copySequences(old: pg.ClientBase, target: pg.ClientBase, names: readonly string[]): Promise<void> {
  const positions = await readPositions(old, names);
  for (let from = 0; from < positions.length; from += atOnce) {
    const some = positions.slice(from, from + atOnce);
    const sql = `select pg_catalog.setval(name::regclass, value, called) from unnest($1::text[], $2::bigint[], $3::boolean[]) p (name, value, called)`;
    await target.query(sql, [some.map((p) => p.name), some.map((p) => p.last_value), some.map((p) => p.is_called)]);
  }
}
