import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { forEitherServer, hostOf, openSession, sessionStartupOptions } from '../session/session';
import { isPermanentForReader, TransferError, transferCodes } from '../session/transfer-error';

const failureSchema = z.object({
  error: z.string(),
  code: z.enum(transferCodes).nullable(),
  refusal: z.object({ sqlState: z.string(), message: z.string() }),
});
const answerSchema = z.union([z.object({ sql: z.string() }), failureSchema]);
/** A catalogue of 50,000 tables takes 41 s on a machine that is not busy. */
const deadlineMs = { base: 180_000, perTable: 20 };
/** With more tables than this, pg_dump runs only once at a time, because it holds some kB for each table. */
const tablesAtOnceMax = 1_000;
/** When the tables are already locked, a client that blocks a view waits for those locks to be released. */
const viewLockMs = 3_000;
/** Workers are loaded from the build output, also when jest runs this file from its source. */
const workerFile = path.resolve(__dirname, '../../dist/dump/pg-dump.worker.js');

export interface SchemaRequest {
  url: string;
  section: 'pre-data' | 'post-data';
  /** How many tables the database has, where that may be many: pg_dump gets time for each table. */
  tables?: number;
  /** The snapshot, exported by a transaction that stays open until this returns. */
  snapshotId?: string;
  /**
   * Whether the transaction of the snapshot holds the locks that pg_dump would take. A lock of pg_dump's own would
   * queue behind a client that waits for one of these, such as a DROP TABLE, and would wait for ever.
   */
  areTablesLocked?: boolean;
  /**
   * Whether the dump contains owners, for a superuser who creates the same database again. The default is without them.
   */
  isComplete?: boolean;
  /** Leaves out privileges and publications. */
  omitPrivileges?: boolean;
  /**
   * Each object is created by its owner (SET SESSION AUTHORIZATION), and is not given to the owner afterwards (OWNER
   * TO).
   */
  isMadeByOwners?: boolean;
  /** Schemas that are left out. */
  excludeSchemas?: readonly string[];
  signal?: AbortSignal | undefined;
}

/**
 * A connection is given as a conninfo string, because its fields override the `-U postgres` that the wrapper of pg_dump
 * (pg-dump.worker.ts) adds.
 */
function conninfoOf(url: URL, areTablesLocked: boolean, isBefore17: boolean): string {
  const quote = (value: string): string => `'${value.replace(/['\\]/g, '\\$&')}'`;
  const fields: Record<string, string> = {
    host: '127.0.0.1',
    dbname: decodeURIComponent(url.pathname.slice(1)),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    sslmode: 'disable',
    options: sessionStartupOptions(
      url.href,
      { purpose: 'read', ...(areTablesLocked && { limits: { lockMs: viewLockMs } }) },
      isBefore17,
    ),
  };
  return Object.entries(fields)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(' ');
}

function argumentsOf(request: SchemaRequest): string[] {
  const fixed = ['--no-large-objects', '--no-subscriptions'];
  if (request.isComplete !== true) fixed.push('--no-owner');
  if (request.omitPrivileges === true) fixed.push('--no-privileges', '--no-publications');
  if (request.isMadeByOwners === true) fixed.push('--use-set-session-authorization');
  for (const schema of request.excludeSchemas ?? []) fixed.push(`--exclude-schema=${schema}`);
  const rest = [
    '--no-security-labels',
    '--no-tablespaces',
    '--lock-wait-timeout=60000',
    `--section=${request.section}`,
  ];
  return [...fixed, ...rest, ...(request.snapshotId === undefined ? [] : [`--snapshot=${request.snapshotId}`])];
}

/**
 * The schema as SQL, written by pg_dump 18 in WebAssembly in a thread of its own, from any server of major 9.2 or
 * newer, without TLS. Throws `dump_failed`, also after 180 s and 20 ms for each table. An abort throws the signal's
 * reason.
 */
export const dumpSchema = (request: SchemaRequest): Promise<string> =>
  forEitherServer((isBefore17) => runPgDump(request, isBefore17));

/**
 * Both sections of the schema, as {@link dumpSchema} returns them: at the same time, or one after the other when there
 * are many tables.
 */
export async function dumpBothSections(
  request: Omit<SchemaRequest, 'section'> & { tables: number },
): Promise<{ pre: string; post: string }> {
  const dump = (section: SchemaRequest['section']): Promise<string> => dumpSchema({ ...request, section });
  if (request.tables > tablesAtOnceMax) return { pre: await dump('pre-data'), post: await dump('post-data') };
  const [pre, post] = await Promise.all([dump('pre-data'), dump('post-data')]);
  return { pre, post };
}

async function runPgDump(request: SchemaRequest, isBefore17: boolean): Promise<string> {
  request.signal?.throwIfAborted();
  const url = new URL(request.url);
  const areTablesLocked = request.areTablesLocked === true;
  const connection = conninfoOf(url, areTablesLocked, isBefore17);
  const workerData = {
    host: hostOf(url),
    port: Number(url.port || 5432),
    connection,
    args: argumentsOf(request),
    areTablesLocked: request.areTablesLocked === true,
  };
  const worker = new Worker(workerFile, { workerData, execArgv: [], env: { TZ: 'UTC' } });
  const signal = AbortSignal.any([
    AbortSignal.timeout(deadlineMs.base + deadlineMs.perTable * (request.tables ?? 0)),
    ...(request.signal ? [request.signal] : []),
  ]);
  try {
    const answer = answerSchema.parse(await firstMessage(worker, signal));
    if ('error' in answer) throw await nameFailure(request, answer);
    return answer.sql;
  } finally {
    await worker.terminate();
  }
}

/**
 * The error of pg_dump with Postgres' message and SQLSTATE. If it would be the same every time, it also names the
 * object.
 */
async function nameFailure(
  { url, signal }: SchemaRequest,
  { error, code, refusal }: z.infer<typeof failureSchema>,
): Promise<TransferError> {
  const { sqlState, message } = refusal;
  const isTooLarge = code === 'message_too_large';
  const isPermanent = isTooLarge || isPermanentForReader(sqlState);
  const found = isPermanent
    ? await findFailingDefinition(url, isTooLarge ? code : sqlState, signal).catch(() => null)
    : null;
  const object = found ?? undefined;
  if (isTooLarge) return new TransferError(code, error, { object });
  const cause = sqlState === '' ? undefined : Object.assign(new Error(message), { code: sqlState });
  return new TransferError('dump_failed', `pg_dump: ${error}`, { cause, object, isPermanent });
}

function firstMessage(worker: Worker, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    signal.addEventListener('abort', abort, { once: true });
    const settle = (): void => signal.removeEventListener('abort', abort);
    worker.once('message', (message: unknown) => {
      settle();
      resolve(message);
    });
    worker.once('error', (error) => {
      settle();
      reject(new TransferError('dump_failed', 'the thread of pg_dump failed', { cause: error }));
    });
    worker.once('exit', (code) => {
      settle();
      reject(new TransferError('dump_failed', `the thread of pg_dump ended with ${code} and no answer`));
    });
  });
}

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
async function findFailingDefinition(
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
