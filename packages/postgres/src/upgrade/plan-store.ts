import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { z } from 'zod';
import { isDenied, lendRights, mayBorrow } from '../load/statement-owners';
import { openSession } from '../session/session';
import { platformRole } from './copy/own-objects';
import type { PlannedStatement, SchemaPlan } from './copy/schema-statements';
import { readRows, type Stage, withDatabase } from './session';
import { UpgradeError } from './upgrade-error';

export type Part = keyof SchemaPlan;

/**
 * Begins a transaction of a loader as the owner that it stands for. Code of the customer's may have run in the session, and left it as another role or with other
 * settings.
 */
export const cleanBegin = 'begin; reset role; reset all; set local synchronous_commit = on';

const statementSchema = z.object({ number: z.number(), sql: z.string(), owner: z.string().nullable(), token: z.string() });
type StoredStatement = z.infer<typeof statementSchema>;

/**
 * Our schema on the target. A loader notes what it has made in the transaction that made it, by a token that only the keeper can read: the customer's code may run in
 * that session, and can neither read the plan nor note anything else.
 */
const planStatements = (schema: string): string[] => [
  `create schema ${schema}`,
  `create table ${schema}.marker (id text primary key)`,
  `create table ${schema}.statement (part text, number int, sql text not null, owner text, token uuid not null, primary key (part, number))`,
  `create table ${schema}.done (token uuid primary key)`,
  `create table ${schema}.horizon (horizon text not null)`,
  `grant usage on schema ${schema} to public`,
  `grant insert on ${schema}.done to public`,
];

/** Writes the plan into the empty target, beside the table that replication will look for there. */
export async function storePlan(stage: Stage, plan: SchemaPlan): Promise<void> {
  const keeper = await stage.keeper();
  const { schema } = stage.own;
  await keeper.query('begin');
  for (const statement of planStatements(schema)) await keeper.query(statement);
  for (const [part, statements] of Object.entries(plan)) await insertPart(stage, keeper, part, statements);
  await keeper.query('commit');
}

async function insertPart(stage: Stage, keeper: pg.Client, part: string, statements: readonly PlannedStatement[]): Promise<void> {
  await keeper.query(
    `insert into ${stage.own.schema}.statement (part, number, sql, owner, token) select $1, s.number, s.sql, s.owner, s.token
      from unnest($2::text[], $3::text[], $4::uuid[]) with ordinality s (sql, owner, token, number)`,
    [part, statements.map(({ sql }) => sql), statements.map(({ owner }) => owner), statements.map(() => randomUUID())],
  );
}

async function readLeft(stage: Stage, part: string): Promise<StoredStatement[]> {
  const { schema } = stage.own;
  const sql = `select s.number, s.sql, s.owner, s.token from ${schema}.statement s where s.part = $1
    and not exists (select from ${schema}.done d where d.token = s.token) order by s.number`;
  return readRows(await stage.keeper(), statementSchema, sql, [part]);
}

/** Plans the copying of some tables, once, and returns the tokens of those that are still to be copied. */
export async function planRows(stage: Stage, tables: readonly string[]): Promise<Map<string, string>> {
  const part = 'rows';
  const keeper = await stage.keeper();
  const { rowCount } = await keeper.query(`select from ${stage.own.schema}.statement where part = $1`, [part]);
  if (rowCount === 0)
    await insertPart(
      stage,
      keeper,
      part,
      tables.map((sql) => ({ sql, owner: null })),
    );
  return new Map((await readLeft(stage, part)).map(({ sql, token }) => [sql, token]));
}

/** In the transaction of what was done. */
export async function noteDone(stage: Stage, session: pg.Client, token: string): Promise<void> {
  await session.query(`insert into ${stage.own.schema}.done (token) values ($1)`, [token]);
}

/**
 * Opens what will be needed for a part, so that it costs no time later.
 */
export async function prepareLoaders(stage: Stage, part: Part): Promise<void> {
  for (const { owner } of await readLeft(stage, part)) if (owner !== null) await stage.loader(owner);
}

/** What did not work, and why. */
export interface FailedStatement {
  part: Part;
  error: UpgradeError;
}

interface PartOptions {
  /** How many statements are made at the same time. */
  lanes?: number;
  onDone?: (fraction: number) => void;
  /** Is told of a statement that failed, and the others are made all the same. Without it the first failure is thrown. */
  onFailure?: (failed: FailedStatement) => void;
}

/**
 * Makes what is left of a part of the plan, each statement as its owner. Each is noted in its own transaction, so that work which a crash has cut goes on behind the
 * last one. Throws `statement_failed`.
 */
export async function runPart(stage: Stage, part: Part, { lanes = 1, onDone, onFailure }: PartOptions = {}): Promise<void> {
  const left = await readLeft(stage, part);
  const total = left.length;
  let done = 0;
  const work = async (lane: number): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      try {
        await makeStatement(stage, { part, lane }, next);
      } catch (error) {
        if (onFailure === undefined || !(error instanceof UpgradeError) || !error.isPermanent) throw error;
        onFailure({ part, error });
      }
      onDone?.(++done / total);
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: lanes }, (_, lane) => work(lane)));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

async function makeStatement(stage: Stage, { part, lane }: { part: Part; lane: number }, statement: StoredStatement): Promise<void> {
  const { sql, owner } = statement;
  try {
    if (owner === null) return await makeExtension(stage, statement);
    if (owner === platformRole) throw new UpgradeError('statement_failed', 'the object belongs to the platform');
    try {
      await runAs(stage, await stage.loader(owner, lane), statement);
    } catch (error) {
      if (!isDenied(error) || !mayBorrow(sql)) throw error;
      await withAllRights(stage, owner, async () => runAs(stage, await stage.loader(owner, lane), statement));
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const options = { cause: error, object: objectOf(sql) };
    throw new UpgradeError('statement_failed', `${part} ${statement.number}: ${sql.slice(0, 200)}: ${why}`, options);
  }
}

async function runAs(stage: Stage, loader: pg.Client, { sql, token }: StoredStatement): Promise<void> {
  await loader.query(cleanBegin);
  try {
    // One statement as the dump has it: the extended protocol refuses a second one.
    const query: pg.QueryConfig & { queryMode: 'extended' } = { text: sql, queryMode: 'extended' };
    await loader.query(query);
    await noteDone(stage, loader, token);
    await loader.query('commit');
  } catch (error) {
    await loader.query('rollback').catch(() => undefined);
    throw error;
  }
}

const ownersSql = `select distinct owner as name from %s.statement where owner is not null and owner <> $1 and owner <> '${platformRole}'`;
const namedSchema = z.object({ name: z.string() });

/** Gives an owner the rights of all other owners for one statement. */
async function withAllRights(stage: Stage, owner: string, work: () => Promise<void>): Promise<void> {
  const owners = await readRows(await stage.keeper(), namedSchema, ownersSql.replace('%s', stage.own.schema), [owner]);
  const others = owners.map(({ name }) => name);
  await lendRights(await stage.server('target'), owner, others, work);
}

const extensionForm = /CREATE EXTENSION IF NOT EXISTS ("(?:[^"]|"")+"|[a-z0-9_]+) WITH SCHEMA ("(?:[^"]|"")+"|[a-z0-9_$]+)/;

/** By the superuser, while nothing of the customer's is in the database but empty schemas. */
async function makeExtension(stage: Stage, { sql, token }: StoredStatement): Promise<void> {
  const form = extensionForm.exec(sql);
  if (form === null) throw new UpgradeError('statement_failed', 'no extension');
  const { client, close } = await openSession(withDatabase(stage.move.targetUrl, stage.move.databaseName), { purpose: 'admin' });
  try {
    await client.query(`create extension if not exists ${form[1]} with schema ${form[2]}`);
  } finally {
    await close();
  }
  await noteDone(stage, await stage.keeper(), token);
}

/** `TABLE public.orders`, from the comment that pg_dump writes before each object. */
function objectOf(sql: string): string {
  const form = /^-- Name: (.*); Type: ([^;]+); Schema: ([^;]*); Owner: /m.exec(sql);
  if (form === null) return sql.replace(/^(?:--[^\n]*\n|\s)+/, '').slice(0, 80);
  const [, object, type, schema] = form;
  return `${type} ${schema === '-' || schema === undefined ? '' : `${schema}.`}${object}`;
}
