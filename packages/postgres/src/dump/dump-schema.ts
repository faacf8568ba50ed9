import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { timeLimit } from '@drydock/process';
import { z } from 'zod';
import { forEitherServer, hostOf, openSession, sessionStartupOptions } from '../session/session';
import { isPermanentForReader, TransferError, transferCodes } from '../session/transfer-error';

const failureSchema = z.object({
  error: z.string(),
  code: z.enum(transferCodes).nullable(),
  refusal: z.object({ sqlState: z.string(), message: z.string() }),
});
const answerSchema = z.union([z.object({ sql: z.string() }), failureSchema]);
/** The time in ms that each table adds to pg_dump's limit. 50,000 tables take 41 s on an idle machine. */
const perTableMs = 20;
/**
 * With more tables than this, the second run of pg_dump waits for the first, because each run needs some kB of memory
 * for each table.
 */
const tablesAtOnceMax = 1_000;
/**
 * The time limit for a view's lock. The client that holds this lock may wait for a table that the dump has locked, and
 * would then never release the view.
 */
const viewLockMs = 3_000;
/** The path leads to the build output, because jest cannot load a worker from its source. */
const workerFile = path.resolve(__dirname, '../../dist/dump/pg-dump.worker.js');

export interface SchemaRequest {
  url: string;
  section: 'pre-data' | 'post-data';
  /** The number of tables, each of which extends pg_dump's time limit. Default: 0, for a database with few tables. */
  tables?: number;
  /** A snapshot whose transaction stays open until the dump ends. */
  snapshotId?: string;
  /**
   * True if the snapshot's transaction already holds the locks of all tables. pg_dump then locks no table. Its locks
   * would queue behind any client that waits for that transaction, such as a DROP TABLE, and would never be granted.
   */
  areTablesLocked?: boolean;
  /** True to include owners. Default: false. */
  isComplete?: boolean;
  /** True to leave out privileges and publications. */
  omitPrivileges?: boolean;
  /**
   * True to create each object as its owner (SET SESSION AUTHORIZATION) instead of changing the owner afterwards (OWNER
   * TO).
   */
  isMadeByOwners?: boolean;
  excludeSchemas?: readonly string[];
  /** The time limit of pg_dump in ms. Each table adds 20 ms. Default: 180,000. */
  baseMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Returns a conninfo string. A URL would not do, because the library that runs pg_dump (see pg-dump.worker.ts) adds `-U
 * postgres`, which only the fields of a conninfo string override.
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
 * Writes a schema as SQL with pg_dump 18, which runs as WebAssembly in its own thread. The server must be of major 14
 * or newer, in a minor version since August 2024. The connection does not use TLS. Throws TransferError `dump_failed`,
 * also after the time limit, or `message_too_large`, or the signal's reason.
 */
export const dumpSchema = (request: SchemaRequest): Promise<string> =>
  forEitherServer((isBefore17) => runPgDump(request, isBefore17));

/**
 * Returns both sections of the schema as {@link dumpSchema} writes them. The two runs of pg_dump are concurrent up to
 * 1,000 tables.
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
  const limitMs = (request.baseMs ?? 180_000) + perTableMs * (request.tables ?? 0);
  const limit = timeLimit(limitMs);
  const signal = AbortSignal.any([limit, ...(request.signal ? [request.signal] : [])]);
  try {
    const message = await firstMessage(worker, signal).catch((error: unknown) => {
      throw limit.aborted && signal.reason === limit.reason ? timedOut(limitMs) : error;
    });
    const answer = answerSchema.parse(message);
    if ('error' in answer) throw await nameFailure(request, answer);
    return answer.sql;
  } finally {
    await worker.terminate();
  }
}

/** The cause has no SQLSTATE, so `dumpDatabase` does not try again. Each attempt would take as long. */
const timedOut = (limitMs: number): TransferError => {
  const cause = new Error(`the schema was not read in ${Math.round(limitMs / 1_000)} seconds`);
  return new TransferError('dump_failed', cause.message, { cause });
};

/**
 * Returns pg_dump's error with Postgres' message and SQLSTATE. If the error is permanent, also names the object whose
 * definition failed.
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
    const stopListening = (): void => signal.removeEventListener('abort', abort);
    worker.once('message', (message: unknown) => {
      stopListening();
      resolve(message);
    });
    worker.once('error', (error) => {
      stopListening();
      reject(new TransferError('dump_failed', 'the thread of pg_dump failed', { cause: error }));
    });
    worker.once('exit', (code) => {
      stopListening();
      reject(new TransferError('dump_failed', `the thread of pg_dump ended with ${code} and no answer`));
    });
  });
}

/**
 * For each kind of object: its catalogue, a query of the objects' oids, and the SQL with which pg_dump reads a
 * definition.
 */
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
/** The first oid of user objects. Smaller ones belong to the system, whose definitions never fail. */
const firstOid = 16_384;
const listedSchema = z.array(z.object({ oid: z.string(), object: z.string() }));

const isSame = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

/**
 * Finds the object whose definition Postgres could not write, such as `view reports.monthly`. pg_dump reads many
 * definitions in one query, and its error does not name the object. So each definition is read by itself, until one
 * fails with the same `code`: a SQLSTATE or the code of a TransferError. Returns null if the object is not found.
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
