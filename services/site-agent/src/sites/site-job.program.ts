/*
 * This program carries out one job on a site's content, under the site's account. It has only the keys of the job's
 * archives, and logs in to one database. Where boxes can be made, the program runs in a box, and sees the files of at
 * most one release.
 */
import { execFile } from 'node:child_process';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { isDiskFull, type NameProblem, remoteArchives, runJobProgram } from '@drydock/agent/jobs';
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
import type { SiteTransfer } from '../database/postgres-transfer';

/** The transfer of the job's engine. Null until it is loaded. */
let transfer: SiteTransfer | null = null;

/** Loads the packages of one engine only, because a job waits until its program has loaded. */
async function loadTransfer(engine: ProgramDatabase['engine']): Promise<SiteTransfer> {
  const loaded =
    engine === 'mariadb'
      ? await import('../database/mariadb-transfer.js')
      : await import('../database/postgres-transfer.js');
  transfer = loaded.transfer;
  return loaded.transfer;
}

/** Names the problem for the worker. Returns null for an error that is about neither the disk nor the database. */
const nameProblem: NameProblem = (error) => {
  const detail = error instanceof Error ? error.message : String(error);
  if (isDiskFull(error)) return { code: 'no_space', detail };
  const failure = transfer?.failureOf(error) ?? null;
  if (failure === null) return null;
  const { code, object, reason, isPermanent } = failure;
  return {
    code: `transfer.${code}`,
    detail,
    facts: { reason, ...(object !== null && { object }), ...(isPermanent && { permanent: 'yes' }) },
  };
};

async function countRows(url: string, table: CountRowsSpec): Promise<{ rows: number | null }> {
  const { countRows: count } = await loadTransfer(url.startsWith('mysql:') ? 'mariadb' : 'postgres');
  return { rows: await count(url, table) };
}

export interface ReleaseToPack {
  spec: PackSpec;
  filesDir: string;
  /**
   * The real path of the folder of all releases. Absolute links into it are packed and reported ({@link
   * directoryRoot}).
   */
  releasesDir: string;
  database: ProgramDatabase;
  key: readonly DerivedKeys[];
  parents: readonly ArchiveLink[];
  sink: ArchiveSink;
  progress(share: number): void;
}

/** Used if the size is not known: the progress is half when this many bytes are packed. */
const guessedBytes = 64 * 2 ** 20;

async function* folderEntry(filesDir: string, skipped: SkippedPaths): AsyncGenerator<StreamEntry> {
  const described = describeFolder(filesDir, (reason) => skipped.add({ path: '.', reason }));
  yield { path: 'folder', content: Readable.from([described]) };
}

/**
 * Packs the files straight from the release's folder, and then its database from one snapshot, into one archive. The
 * memory that is needed does not grow with the content.
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
  const { dump } = await loadTransfer(database.engine);
  const packed = await pack({
    roots: [
      directoryRoot(archiveRoots.files, filesDir, releasesDir),
      streamRoot(archiveRoots.database, dump(database, new AbortController().signal)),
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
 * server. If one fails, the other is stopped.
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
    const engine = await loadTransfer(database.engine);
    return engine.load(database, openEntries({ chain, key, root: archiveRoots.database, signal }), signal);
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
 * Reads the description of the release's folder from the archives. Returns null for archives of earlier versions, which
 * have no description.
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
 * Resolves when everything that was written to the file system of `folder` is on disk. One call serves a million files;
 * an fsync of each file would take minutes. Node has no syncfs, so this runs `sync -f` of coreutils. Where `sync` does
 * not know `-f`, it runs `sync` for all file systems.
 */
async function syncFileSystem(folder: string, signal: AbortSignal): Promise<void> {
  await run('sync', ['-f', folder], { signal }).catch(async (error: unknown) => {
    signal.throwIfAborted();
    await run('sync', [], { signal }).catch(() => {
      throw error;
    });
  });
}

/**
 * The bytes that are written between two flushes. Fewer would not be worth a flush, and more would take long to reach
 * the disk.
 */
const flushedEveryBytes = 96 * 1024 * 1024;

/**
 * Returns a function to be called with the number of bytes written so far. The function starts flushes while writing
 * goes on, so that the sync at the end finds little left to do. A failed flush is not reported, because the sync at the
 * end would fail too.
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
