import type pg from 'pg';
import { z } from 'zod';
import { openSession } from '../session/session';
import {
  asTransferError,
  isPermanentForReader,
  isPermanentSqlState,
  sqlStateOf,
  TransferError,
} from '../session/transfer-error';
import { computedColumns, hashIfPossible } from './computed-columns';
import { type Copied, copyOut } from './copy-table';
import { type DatabaseProperties, type Grant, readProperties } from './database-properties';
import {
  type ComputedColumns,
  type DumpManifest,
  dataPath,
  type Section,
  sectionPaths,
  type TableEntry,
  type TablesFile,
  textSection,
} from './dump-format';
import { dumpBothSections } from './dump-schema';
import { readLargeObjects } from './large-objects';
import { listSequences, listTables, lockTables, qualify } from './list-tables';

export interface DumpRequest {
  /**
   * The login of a reader with all read rights, or of the owner if no table forces row security. The connection does
   * not use TLS.
   */
  url: string;
  /** True to record the owner of each object. Otherwise the loading role owns everything. */
  withOwners?: boolean;
  /** The customers' grants on the database, if a lock-out has revoked them. Default: the database's present grants. */
  grants?: readonly Grant[] | undefined;
  /** The time limit in ms for reading the schema. Each table adds 20 ms. Default: 180,000. */
  schemaMs?: number;
  signal?: AbortSignal | undefined;
}

const snapshotSchema = z.object({ id: z.string(), version: z.coerce.number(), encoding: z.string() });
const snapshotSql = `select pg_catalog.pg_export_snapshot() as id, current_setting('server_version_num') as version,
  current_setting('server_encoding') as encoding`;

const policyRolesSql = `select distinct r.rolname as name from pg_catalog.pg_policy p
  cross join unnest(p.polroles) as named(role)
  join pg_catalog.pg_roles r on r.oid = named.role order by 1`;

async function listPolicyRoles(client: pg.Client): Promise<string[]> {
  const rows = z.array(z.object({ name: z.string() })).parse((await client.query(policyRolesSql)).rows);
  return rows.map(({ name }) => name);
}

/** The most attempts to read the schema. An attempt fails if somebody drops or alters an object meanwhile. */
const attemptsMax = 20;
/** SQLSTATEs of a lock time-out and of the internal error for an object that is dropped while it is read. */
const passingCodes: ReadonlySet<unknown> = new Set(['55P03', 'XX000']);

/**
 * Tells whether another attempt may succeed. An object may have been dropped after it was listed, or the wait for a
 * view's lock may have timed out behind an ALTER.
 */
function isPassing(error: unknown): boolean {
  const code = sqlStateOf(error instanceof TransferError && error.cause !== undefined ? error.cause : error);
  if (code === 'dump_failed') return error instanceof TransferError && !error.isPermanent;
  return passingCodes.has(code) || (isPermanentSqlState(code) && !isPermanentForReader(code));
}

interface Moment {
  head: TablesFile;
  pre: string;
  post: string;
  properties: DatabaseProperties;
}

/**
 * Opens a snapshot and locks its tables in `client`. This session also reads all rows. Another session would queue
 * behind a client that waits for these locks, such as a TRUNCATE, and would never continue. For the same reason
 * pg_dump, which has its own session, locks no tables.
 */
async function beginMoment(client: pg.Client, request: DumpRequest, attempt = 1): Promise<Moment> {
  const { url, schemaMs, signal, withOwners = false } = request;
  try {
    await client.query('begin isolation level repeatable read read only');
    const { id: snapshotId, version, encoding } = snapshotSchema.parse((await client.query(snapshotSql)).rows[0]);
    const tables = await listTables(client);
    await lockTables(client);
    const policyRoles = await listPolicyRoles(client);
    const found = await readProperties(client, withOwners);
    const properties = { ...found, grants: [...(request.grants ?? found.grants)] };
    const owned = withOwners ? { isComplete: true, isMadeByOwners: true } : {};
    const { pre, post } = await dumpBothSections({
      url,
      snapshotId,
      areTablesLocked: true,
      tables: tables.length,
      baseMs: schemaMs,
      signal,
      ...owned,
    });
    const format = withOwners ? 3 : 2;
    const head: TablesFile = {
      format_version: format,
      server_version_num: version,
      encoding,
      policy_roles: policyRoles,
      tables,
    };
    return { head, pre, post, properties };
  } catch (error) {
    if (!isPassing(error)) throw error;
    if (attempt === attemptsMax)
      throw asTransferError('dump_failed', 'somebody drops or alters tables again and again', error, {
        isPermanent: false,
      });
    await client.query('rollback');
    return beginMoment(client, request, attempt + 1);
  }
}

/** Makes contents share one session. Each content waits until the previous one was read. */
function oneAtATime(): (content: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  let turn: Promise<void> = Promise.resolve();
  return async function* (content) {
    const before = turn;
    let end = (): void => undefined;
    turn = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    try {
      yield* content;
    } finally {
      end();
    }
  };
}

/** Yields a table's rows, and then calls `andThen`. Adds the table's name to errors of Postgres. */
async function* named(
  table: TableEntry,
  rows: AsyncIterable<Buffer>,
  andThen: () => Promise<void>,
): AsyncGenerator<Buffer> {
  try {
    yield* rows;
    await andThen();
  } catch (error) {
    throw asTransferError('dump_failed', `rows of ${qualify(table)}`, error, { object: `table ${qualify(table)}` });
  }
}

type Read = Copied & { computed?: ComputedColumns };

function manifestOf(head: TablesFile, copied: (Read | undefined)[], largeObjects: number): DumpManifest {
  const tables = head.tables.map((table, index) => {
    const counts = copied[index];
    if (counts === undefined) throw new TransferError('dump_failed', `${dataPath(index)} was not read to its end`);
    return { ...table, ...counts };
  });
  return { ...head, tables, large_objects: largeObjects };
}

/**
 * Dumps a database from one repeatable-read snapshot as sections: tables.json, schema-pre.sql, schema-post.sql,
 * database.json, data/<n>.copy, sequences.json, large-objects.bin, manifest.json. Reading of the contents must begin in
 * this order. Writers are not blocked, but DDL waits for the end of the dump. Throws {@link TransferError}
 * `dump_failed` or `message_too_large`, errors of Postgres, or the signal's reason.
 */
export async function* dumpDatabase(request: DumpRequest): AsyncGenerator<Section> {
  const session = await openSession(request.url, { purpose: 'read', signal: request.signal });
  const { client } = session;
  try {
    const { head, pre, post, properties } = await beginMoment(client, request);
    yield textSection(sectionPaths.tables, () => Promise.resolve(JSON.stringify(head)));
    yield textSection(sectionPaths.schemaPre, () => Promise.resolve(pre));
    yield textSection(sectionPaths.schemaPost, () => Promise.resolve(post));
    yield textSection(sectionPaths.properties, () => Promise.resolve(JSON.stringify(properties)));
    const copied: (Read | undefined)[] = head.tables.map(() => undefined);
    const computed = await computedColumns(client);
    const inTurn = oneAtATime();
    for (const [index, table] of head.tables.entries()) {
      const onEnd = (counts: Copied): void => {
        copied[index] = counts;
      };
      const hash = async (): Promise<void> => {
        const found = await hashIfPossible(client, table, computed.get(qualify(table)));
        if (found !== undefined) Object.assign(copied[index] ?? {}, { computed: found });
      };
      yield { path: dataPath(index), content: inTurn(named(table, copyOut(client, table, onEnd), hash)) };
    }
    let largeObjects = 0;
    yield textSection(sectionPaths.sequences, async () => JSON.stringify(await listSequences(client)));
    yield { path: sectionPaths.largeObjects, content: readLargeObjects(client, () => void largeObjects++) };
    yield textSection(sectionPaths.manifest, () =>
      Promise.resolve(JSON.stringify(manifestOf(head, copied, largeObjects))),
    );
  } finally {
    await session.close();
  }
}
