import type pg from 'pg';
import { z } from 'zod';
import { ownSchema } from './own-objects';
import type { SchemaPlan } from './schema-statements';
import { readRows } from './session';
import { UpgradeError } from './upgrade-error';

export type Part = keyof SchemaPlan;

const planSql = `create schema if not exists ${ownSchema};
  create table if not exists ${ownSchema}.marker (id text primary key);
  create table if not exists ${ownSchema}.replica_identity (relation oid primary key, identity "char" not null, index_name text);
  create table ${ownSchema}.statement (part text, number int, sql text not null, is_done boolean not null default false, primary key (part, number));
  create table ${ownSchema}.copied (name text primary key)`;

const statementSchema = z.object({ number: z.number(), sql: z.string() });

/** Writes the plan into the empty target, beside the tables that replication will look for there. */
export async function storePlan(target: pg.ClientBase, plan: SchemaPlan): Promise<void> {
  await target.query(`begin; ${planSql}`);
  for (const [part, statements] of Object.entries(plan))
    await target.query(
      `insert into ${ownSchema}.statement (part, number, sql) select $1, s.number, s.sql from unnest($2::text[]) with ordinality s (sql, number)`,
      [part, statements],
    );
  await target.query('commit');
}

/**
 * Makes what is left of some parts of the plan, over as many sessions as are given. Each statement is noted in its own transaction, so that work which a crash
 * has cut goes on behind the last one. Throws `statement_failed`.
 */
export async function runPart(sessions: pg.ClientBase[], part: Part, onDone: (fraction: number) => void = () => undefined): Promise<void> {
  const [first] = sessions;
  if (first === undefined) throw new Error('no session');
  const sql = `select number, sql from ${ownSchema}.statement where part = $1 and not is_done order by number`;
  const left = await readRows(first, statementSchema, sql, [part]);
  const total = left.length;
  let done = 0;
  const work = async (session: pg.ClientBase): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      await runStatement(session, part, next);
      onDone(++done / total);
    }
  };
  const outcomes = await Promise.allSettled(sessions.map(work));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

async function runStatement(session: pg.ClientBase, part: Part, { number, sql }: z.infer<typeof statementSchema>): Promise<void> {
  await session.query('begin');
  try {
    // One statement as the dump has it: the extended protocol refuses a second one.
    const query: pg.QueryConfig & { queryMode: 'extended' } = { text: sql, queryMode: 'extended' };
    await session.query(query);
    await session.query(`update ${ownSchema}.statement set is_done = true where part = $1 and number = $2`, [part, number]);
    await session.query('commit');
  } catch (error) {
    await session.query('rollback').catch(() => undefined);
    const why = error instanceof Error ? error.message : String(error);
    throw new UpgradeError('statement_failed', `${part} ${number}: ${sql.slice(0, 200)}: ${why}`, { cause: error });
  }
}
