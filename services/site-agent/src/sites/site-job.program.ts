import { execFile } from 'node:child_process';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { isDiskFull } from '@drydock/agent/host';
import { type NameProblem, remoteArchives, runJobProgram } from '@drydock/agent/jobs';
import {
  archiveRoots,
  type CountRowsSpec,
  type PackResult,
  type PackSpec,
  type ProgramDatabase,
  programSetupSchema,
  SkippedPaths,
  type StageResult,
} from '@drydock/agent/site';
import {
  ArchiveError,
  type ArchiveLink,
  type ArchiveSink,
  type DerivedKeys,
  decodeKeys,
  describeFolder,
  directoryRoot,
  extract,
  openEntries,
  pack,
  restoreFolder,
  type StreamEntry,
  streamRoot,
} from '@drydock/archive';
import { TransferError as MariadbError } from '@drydock/mysql';
import { isPermanentSqlState, TransferError as PostgresError } from '@drydock/postgres';
import { createConnection, escapeId } from 'mysql2/promise';
import pg from 'pg';
import { dumpOf, loadInto } from '../database/dump-and-load';

/**
 * This program carries out one job on a site's content, in the site's box and as the site's account. It sees the files
 * of one release and nothing else of this machine, holds only the keys of the job's archives, and logs in to one
 * database.
 */
const nameProblem: NameProblem = (error) => {
  const detail = error instanceof Error ? error.message : String(error);
  if (isDiskFull(error)) return { code: 'no_space', detail };
  if (!(error instanceof PostgresError || error instanceof MariadbError)) {
    const isPermanent = error instanceof Error && 'code' in error && isPermanentSqlState(error.code);
    return isPermanent ? { code: 'transfer.dump_failed', detail, facts: { reason: detail, permanent: 'yes' } } : null;
  }
  const { code, object, reason, isPermanent } = error;
  return {
    code: `transfer.${code}`,
    detail,
    facts: { reason, ...(object !== null && { object }), ...(isPermanent && { permanent: 'yes' }) },
  };
};

const answerMs = 30_000;

/** The codes of Postgres and MariaDB for a table that does not exist. */
const unknownTable: ReadonlySet<string> = new Set(['42P01', 'ER_NO_SUCH_TABLE', 'ER_BAD_DB_ERROR']);

/** The number of rows of a table as its owner counts them; null if the table does not exist. */
async function countRows(url: string, table: CountRowsSpec): Promise<{ rows: number | null }> {
  try {
    return { rows: await (url.startsWith('mysql:') ? countInMariadb(url, table) : countInPostgres(url, table)) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && unknownTable.has(String(error.code))) return { rows: null };
    throw error;
  }
}

async function countInPostgres(connectionString: string, { schema, name }: CountRowsSpec): Promise<number> {
  const connection = new pg.Client({
    connectionString,
    connectionTimeoutMillis: answerMs,
    statement_timeout: answerMs,
  });
  connection.on('error', () => undefined);
  await connection.connect();
  try {
    const table = `${connection.escapeIdentifier(schema)}.${connection.escapeIdentifier(name)}`;
    const { rows } = await connection.query<{ count: string }>(`SELECT pg_catalog.count(*) FROM ONLY ${table}`);
    return Number(rows[0]?.count ?? 0);
  } finally {
    await connection.end();
  }
}

async function countInMariadb(uri: string, { schema, name }: CountRowsSpec): Promise<number> {
  const connection = await createConnection({ uri, connectTimeout: answerMs, rowsAsArray: true });
  connection.on('error', () => undefined);
  try {
    const sql = `SELECT count(*) FROM ${escapeId(schema, true)}.${escapeId(name, true)}`;
    const [rows] = await connection.query({ sql, timeout: answerMs });
    const [[count] = []] = rows as unknown[][];
    return Number(count);
  } finally {
    connection.destroy();
  }
}

export interface ReleaseToPack {
  spec: PackSpec;
  filesDir: string;
  /** See {@link directoryRoot}. */
  releasesDir: string;
  database: ProgramDatabase;
  key: readonly DerivedKeys[];
  parents: readonly ArchiveLink[];
  sink: ArchiveSink;
  progress(share: number): void;
}

/** The size at which the progress shows half when the real size is not known. */
const guessedBytes = 64 * 2 ** 20;

async function* folderEntry(filesDir: string, skipped: SkippedPaths): AsyncGenerator<StreamEntry> {
  const described = describeFolder(filesDir, (reason) => skipped.add({ path: '.', reason }));
  yield { path: 'folder', content: Readable.from([described]) };
}

/**
 * Packs files straight from the release's folder, then its database from one snapshot, into one archive. The memory
 * that this takes does not grow with the size of the content.
 */
async function packRelease({
  spec,
  filesDir,
  releasesDir,
  database,
  key,
  parents,
  sink,
  progress,
}: ReleaseToPack): Promise<PackResult> {
  const skipped = new SkippedPaths();
  const packed = await pack({
    roots: [
      directoryRoot(archiveRoots.files, filesDir, releasesDir),
      streamRoot(archiveRoots.database, dumpOf(database, new AbortController().signal)),
      streamRoot(archiveRoots.folder, folderEntry(filesDir, skipped)),
    ],
    sink,
    key,
    identity: {
      archiveId: spec.archive_id,
      siteId: spec.origin.site_id,
      orgId: spec.origin.organisation_id,
      sequence: spec.sequence,
    },
    createdAt: new Date(spec.created_at),
    ...(parents.length > 0 && { parent: parents }),
    onProgress: ({ rawBytes }) =>
      progress(rawBytes / Math.max(spec.expected_raw_bytes ?? rawBytes + guessedBytes, rawBytes, 1)),
    onSkip: skipped.add,
  });
  return {
    manifest_mac: packed.manifestMac,
    manifest_sha256: packed.manifestSha256,
    size_bytes: packed.sizeBytes,
    raw_bytes: packed.rawBytes,
    entries: packed.entries,
    skipped: skipped.result,
  };
}

export interface ReleaseToStage {
  chain: readonly ArchiveLink[];
  key: readonly DerivedKeys[];
  /** The empty folder for the files. */
  filesDir: string;
  /** A fresh and empty database. Null if only the files are staged. */
  database: ProgramDatabase | null;
  progress(share: number): void;
}

/**
 * Stages files and database at the same time, because the files wait for the disk and the database waits for its
 * server. A failure of either stops both.
 */
async function stageRelease({ chain, key, filesDir, database, progress }: ReleaseToStage): Promise<StageResult> {
  const lost = new SkippedPaths();
  const stop = new AbortController();
  const { signal } = stop;
  const files = async () => {
    const flush = flushBehind(filesDir, signal);
    const onProgress = ({ rawBytes, rawBytesTotal }: { rawBytes: number; rawBytesTotal: number }): void => {
      flush(rawBytes);
      progress(rawBytes / Math.max(rawBytesTotal, 1));
    };
    const extracted = await extract({
      chain,
      key,
      roots: { [archiveRoots.files]: filesDir },
      signal,
      onProgress,
      onLost: lost.add,
    });
    await giveFolder();
    await syncFileSystem(filesDir, signal);
    return extracted;
  };
  const giveFolder = async (): Promise<void> => {
    const described = await describedFolder(chain, key, signal);
    if (described !== null) restoreFolder(filesDir, described, (reason) => lost.add({ path: '.', reason }));
  };
  const load = async (): Promise<StageResult['database']> => {
    if (database === null) return [];
    return loadInto(database, openEntries({ chain, key, root: archiveRoots.database, signal }), signal);
  };
  const [ofFiles, ofDatabase] = [files(), load()];
  try {
    const [{ entries, rawBytes }, findings] = await Promise.all([ofFiles, ofDatabase]);
    return { entries, raw_bytes: rawBytes, lost: lost.result, database: findings };
  } finally {
    stop.abort();
    await Promise.allSettled([ofFiles, ofDatabase]);
  }
}

/**
 * The description of the release's folder in the archives. Null for archives of earlier versions, which have no
 * description.
 */
async function describedFolder(
  chain: readonly ArchiveLink[],
  key: readonly DerivedKeys[],
  signal: AbortSignal,
): Promise<Buffer | null> {
  try {
    for await (const entry of openEntries({ chain, key, root: archiveRoots.folder, signal }))
      return await buffer(entry.content());
  } catch (error) {
    if (!(error instanceof ArchiveError && error.reason === 'unknown_root')) throw error;
  }
  return null;
}

const run = promisify(execFile);

/**
 * Resolves when everything written to the file system of `folder` is on disk. One call serves a million files; an fsync
 * of each file would take minutes. Node has no syncfs, so this runs coreutils' `sync -f`. A system without `-f` has a
 * plain `sync`, which does more than needed.
 */
async function syncFileSystem(folder: string, signal: AbortSignal): Promise<void> {
  await run('sync', ['-f', folder], { signal }).catch(async (error: unknown) => {
    signal.throwIfAborted();
    await run('sync', [], { signal }).catch(() => {
      throw error;
    });
  });
}

/** The bytes written between two flushes. They are enough to be worth a flush, and few enough to be on disk soon. */
const flushedEveryBytes = 96 * 1024 * 1024;

/**
 * Returns a function that is called with the number of bytes written so far. It flushes them while writing goes on, so
 * that the sync at the end finds little left to do. At most one flush runs at a time. A failed flush is not reported,
 * because the sync at the end fails as well.
 */
function flushBehind(folder: string, signal: AbortSignal): (writtenBytes: number) => void {
  let flushedBytes = 0;
  let isFlushing = false;
  return (writtenBytes) => {
    if (isFlushing || writtenBytes - flushedBytes < flushedEveryBytes) return;
    isFlushing = true;
    flushedBytes = writtenBytes;
    const ended = (): void => {
      isFlushing = false;
    };
    syncFileSystem(folder, signal).then(ended, ended);
  };
}

runJobProgram(async (sent, { openChannel, progress }) => {
  const setup = programSetupSchema.parse(sent);
  if (setup.work === 'count_rows') return countRows(setup.database.url, setup.spec);
  const archives = remoteArchives(openChannel());
  const linksOf = (listed: readonly { archive_id: string; manifest_mac: string }[]): ArchiveLink[] =>
    listed.map(({ archive_id: archiveId, manifest_mac: manifestMac }, at) => ({
      source: archives.source(at),
      expected: { archiveId, siteId: setup.spec.origin.site_id, orgId: setup.spec.origin.organisation_id, manifestMac },
    }));
  try {
    if (setup.work === 'pack') {
      const { spec, files_dir: filesDir, releases_dir: releasesDir, database } = setup;
      const key = [...spec.parents, spec].map(({ keys }) => decodeKeys(keys));
      return await packRelease({
        spec,
        filesDir,
        releasesDir,
        database,
        key,
        parents: linksOf(spec.parents),
        sink: archives.sink,
        progress,
      });
    }
    const { spec, files_dir: filesDir, database } = setup;
    const key = spec.chain.map(({ keys }) => decodeKeys(keys));
    return await stageRelease({ chain: linksOf(spec.chain), key, filesDir, database, progress });
  } finally {
    archives.end();
  }
}, nameProblem);
