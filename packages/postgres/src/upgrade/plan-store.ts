import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { z } from 'zod';
import { splitStatements } from '../dump/split-statements';
import { deniedSchema, lackingRights } from '../load/owner-roles';
import { isRefusedByPostgres, lendRights, runsNoCode } from '../load/statement-owners';
import { openSession, runStatement } from '../session/session';
import { platformRole } from './copy/own-objects';
import type { PlannedStatement, SchemaPlan } from './copy/schema-statements';
import { readRows, type Stage, UpgradeError, withDatabase } from './session';

export type Part = keyof SchemaPlan;

/**
 * Begins a transaction in a loader's session, which then acts as the owner. Role and settings are reset, because the
 * customer's code may have changed them before.
 */
export const cleanBegin = 'begin; reset role; reset all; set local synchronous_commit = on';

const statementSchema = z.object({
  number: z.number(),
  sql: z.string(),
  owner: z.string().nullable(),
  token: z.string(),
});
type StoredStatement = z.infer<typeof statementSchema>;

/**
 * The move's schema on the target. A loader creates an object and records it in one transaction. It records a token,
 * which only the keeper can read in the plan. So the customer's code in that session can neither read the plan nor
 * record anything else.
 */
const planStatements = (schema: string): string[] => [
  `create schema ${schema}`,
  `create table ${schema}.marker (id text primary key)`,
  `create table ${schema}.statement (part text, number int, sql text not null, owner text, token uuid not null,
      primary key (part, number))`,
  `create table ${schema}.done (token uuid primary key)`,
  `create table ${schema}.horizon (horizon text not null)`,
  `grant usage on schema ${schema} to public`,
  `grant insert on ${schema}.done to public`,
];

/** Writes the plan into the empty target, and creates the table for replication's marker. */
export async function storePlan(stage: Stage, plan: SchemaPlan): Promise<void> {
  const keeper = await stage.keeper();
  const { schema } = stage.own;
  await keeper.query('begin');
  for (const statement of planStatements(schema)) await keeper.query(statement);
  for (const [part, statements] of Object.entries(plan)) await insertPart(stage, keeper, part, statements);
  await keeper.query('commit');
}

async function insertPart(
  stage: Stage,
  keeper: pg.Client,
  part: string,
  statements: readonly PlannedStatement[],
): Promise<void> {
  await keeper.query(
    `insert into ${stage.own.schema}.statement (part, number, sql, owner, token)
      select $1, s.number, s.sql, s.owner, s.token
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

/**
 * Plans the copying of tables unless it was planned before. Returns the tokens of the tables that are not copied yet,
 * by the table's name.
 */
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

/** Records a statement as done. Except for an extension, `session` is in the transaction that ran the statement. */
export async function noteDone(stage: Stage, session: pg.Client, token: string): Promise<void> {
  await session.query(`insert into ${stage.own.schema}.done (token) values ($1)`, [token]);
}

/** Opens the sessions of a part before the pause, so that opening them does not lengthen the pause. */
export async function prepareLoaders(stage: Stage, part: Part): Promise<void> {
  for (const { owner } of await readLeft(stage, part)) if (owner !== null) await stage.loader(owner);
}

export interface FailedStatement {
  part: Part;
  /** The SQL without pg_dump's comments. */
  sql: string;
  error: UpgradeError;
}

interface PartOptions {
  /** The number of statements that run at the same time. */
  lanes?: number;
  onDone?: (fraction: number) => void;
  /**
   * Called for each permanent failure. The other statements then still run. Without this function, the first failure is
   * thrown.
   */
  onFailure?: (failed: FailedStatement) => void;
}

/**
 * Runs the statements of a part that are not recorded as done. A statement runs as its object's owner and is recorded
 * in the same transaction, so that a run after a crash continues. An extension is made by the superuser and recorded
 * afterwards. Throws `statement_failed`, except for a permanent failure that `onFailure` gets.
 */
export async function runPart(stage: Stage, part: Part, options: PartOptions = {}): Promise<void> {
  // The loop repeats, because lending a right adds a statement to the part `late`, which may be the running part.
  for (let last = 0; ; ) {
    const left = (await readLeft(stage, part)).filter(({ number }) => number > last);
    last = left.at(-1)?.number ?? last;
    if (left.length === 0) return;
    await runStatements(stage, part, left, options);
  }
}

async function runStatements(
  stage: Stage,
  part: Part,
  left: StoredStatement[],
  { lanes = 1, onDone, onFailure }: PartOptions,
): Promise<void> {
  const total = left.length;
  let done = 0;
  const work = async (lane: number): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      try {
        await makeStatement(stage, { part, lane }, next);
      } catch (error) {
        if (onFailure === undefined || !(error instanceof UpgradeError) || !error.isPermanent) throw error;
        onFailure({ part, error, sql: next.sql.replace(/^(?:--[^\n]*\n|\s)+/, '') });
      }
      onDone?.(++done / total);
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: lanes }, (_, lane) => work(lane)));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

async function makeStatement(
  stage: Stage,
  { part, lane }: { part: Part; lane: number },
  statement: StoredStatement,
): Promise<void> {
  const { sql, owner } = statement;
  try {
    if (owner === null) return await makeExtension(stage, statement);
    if (owner === platformRole) throw new UpgradeError('statement_failed', 'the object belongs to the platform');
    await makeAsOwner(stage, { owner, lane }, statement);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const options = { cause: error, object: objectOf(sql) };
    throw new UpgradeError('statement_failed', `${part} ${statement.number}: ${sql.slice(0, 200)}: ${why}`, options);
  }
}

const identifier = '(?:"(?:[^"]|"")+"|[^\\s(",.)]+)';

interface Maker {
  owner: string;
  lane: number;
}

/**
 * Runs a statement as its owner. The statement may need rights that the owner has lost since it created the object.
 * Rights on a schema, and the right to reference a table, are lent until the part `late`, which begins after rows and
 * indexes exist. Rights of all other owners are lent for one statement that runs no code of the customer.
 */
async function makeAsOwner(stage: Stage, maker: Maker, statement: StoredStatement): Promise<void> {
  const { owner, lane } = maker;
  const run = async (): Promise<void> => runAs(stage, await stage.loader(owner, lane), statement);
  try {
    await run();
  } catch (error) {
    if (!isRefusedByPostgres(error)) throw error;
    const [{ outline } = { outline: '' }] = splitStatements(`${statement.sql}\n;`);
    if (await lendLacking(stage, maker, { schema: deniedSchema(error), outline }))
      return makeAsOwner(stage, maker, statement);
    if (!(await runsNoCode(await stage.keeper(), outline))) throw error;
    await withAllRights(stage, owner, run);
  }
}

const namedSchema = z.object({ name: z.string() });
const databaseOwnerSql = `select pg_catalog.pg_get_userbyid(datdba) as name from pg_catalog.pg_database
    where datname = pg_catalog.current_database()`;

/** A right on an object as in GRANT and REVOKE, and the object's owner. */
const lentSchema = z.object({ right: z.string(), giver: z.string() });
type Lent = z.infer<typeof lentSchema>;

const referencesForm = new RegExp(
  '^ALTER TABLE .* FOREIGN KEY \\(.*\\) ' +
    `REFERENCES (${identifier}\\.${identifier})\\((${identifier}(?:, ${identifier})*)\\)`,
  'is',
);
const referencesSql = `select pg_catalog.format('REFERENCES (%I) ON TABLE %I.%I', a.attname, n.nspname,
    c.relname) as right, pg_catalog.pg_get_userbyid(c.relowner) as giver
  from pg_catalog.parse_ident($2) i (parts) join pg_catalog.pg_namespace n on n.nspname = i.parts[1]
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = i.parts[2]
  join pg_catalog.pg_attribute a on a.attrelid = c.oid
  where pg_catalog.quote_ident(a.attname) = any ($3)
  and not pg_catalog.has_column_privilege($1, c.oid, a.attnum, 'references')`;

async function readLacking(keeper: pg.Client, owner: string, { schema, outline }: Refused): Promise<Lent[]> {
  if (schema !== null)
    return (await lackingRights(keeper, { owner, schema })).map(({ right, schema_owner: giver }) => ({
      right: `${right} ON SCHEMA ${pg.escapeIdentifier(schema)}`,
      giver,
    }));
  const form = referencesForm.exec(outline);
  const columns = form?.[2]?.match(new RegExp(identifier, 'gi'));
  return columns ? readRows(keeper, lentSchema, referencesSql, [owner, form?.[1], columns]) : [];
}

interface Refused {
  /** The schema in the error, or null. */
  schema: string | null;
  outline: string;
}

/**
 * Lends the owner the right that is missing according to the error. Returns false if none is missing, or nobody can
 * lend it. The revocation is planned before the grant, so that a crash leaves no lent right behind.
 */
async function lendLacking(stage: Stage, { owner, lane }: Maker, refused: Refused): Promise<boolean> {
  const keeper = await stage.keeper();
  const [database] = await readRows(keeper, namedSchema, databaseOwnerSql);
  const giverOf = (name: string): string => (name === 'pg_database_owner' ? (database?.name ?? platformRole) : name);
  const lacking = (await readLacking(keeper, owner, refused)).map(({ right, giver }) => ({
    right,
    giver: giverOf(giver),
  }));
  const lent = lacking.filter(({ giver }) => giver !== platformRole && giver !== owner);
  for (const { right, giver } of lent) {
    await insertLast(stage, keeper, { sql: `REVOKE ${right} FROM ${pg.escapeIdentifier(owner)}`, owner: giver });
    const loader = await stage.loader(giver, lendingLane + lane);
    await runAs(stage, loader, { sql: `GRANT ${right} TO ${pg.escapeIdentifier(owner)}`, token: null });
  }
  return lent.length > 0;
}

/**
 * The first lane for lending. Rights are lent in a session of their own, because the giver's other sessions may run a
 * statement at the same time.
 */
const lendingLane = 100;

async function insertLast(stage: Stage, keeper: pg.Client, { sql, owner }: PlannedStatement): Promise<void> {
  const part: Part = 'late';
  await keeper.query(
    `insert into ${stage.own.schema}.statement (part, number, sql, owner, token)
      select $1, coalesce(max(number), 0) + 1, $2, $3, $4 from ${stage.own.schema}.statement where part = $1`,
    [part, sql, owner, randomUUID()],
  );
}

interface Run {
  sql: string;
  /** Null for a statement outside of the plan. */
  token: string | null;
}

async function runAs(stage: Stage, loader: pg.Client, { sql, token }: Run): Promise<void> {
  await loader.query(cleanBegin);
  try {
    // The extended protocol refuses a second statement in the text.
    await runStatement(loader, sql);
    if (token !== null) await noteDone(stage, loader, token);
    await loader.query('commit');
  } catch (error) {
    await loader.query('rollback').catch(() => undefined);
    throw error;
  }
}

const ownersSql = `select distinct owner as name from %s.statement where owner is not null and owner <> $1
  and owner <> '${platformRole}'`;

/** Gives an owner the rights of all other owners while `work` runs. */
async function withAllRights(stage: Stage, owner: string, work: () => Promise<void>): Promise<void> {
  const owners = await readRows(await stage.keeper(), namedSchema, ownersSql.replace('%s', stage.own.schema), [owner]);
  const others = owners.map(({ name }) => name);
  await lendRights(await stage.server('target'), owner, others, work);
}

const extensionForm =
  /CREATE EXTENSION IF NOT EXISTS ("(?:[^"]|"")+"|[a-z0-9_]+) WITH SCHEMA ("(?:[^"]|"")+"|[a-z0-9_$]+)/;

/** Creates an extension as the superuser. The database has no objects of the customer yet except empty schemas. */
async function makeExtension(stage: Stage, { sql, token }: StoredStatement): Promise<void> {
  const form = extensionForm.exec(sql);
  if (form === null) throw new UpgradeError('statement_failed', 'no extension');
  const { client, close } = await openSession(withDatabase(stage.move.targetUrl, stage.move.databaseName), {
    purpose: 'admin',
  });
  try {
    await client.query(`create extension if not exists ${form[1]} with schema ${form[2]}`);
  } finally {
    await close();
  }
  await noteDone(stage, await stage.keeper(), token);
}

/** Returns a name such as `TABLE public.orders` from pg_dump's comment. */
function objectOf(sql: string): string {
  const form = /^-- Name: (.*); Type: ([^;]+); Schema: ([^;]*); Owner: /m.exec(sql);
  if (form === null) return sql.replace(/^(?:--[^\n]*\n|\s)+/, '').slice(0, 80);
  const [, object, type, schema] = form;
  return `${type} ${schema === '-' || schema === undefined ? '' : `${schema}.`}${object}`;
}
