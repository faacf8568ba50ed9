import { readFileSync } from 'node:fs';
import { access, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isDiskFull } from '@drydock/agent/jobs';
import {
  ArchiveError,
  type ArchiveSource,
  blockPiecesOf,
  completeLimits,
  folderSource,
  manifestName,
  type OpenArchive,
  openChain,
  piecesOf,
  releaseMemory,
  type SealedPiece,
  verifyPiece,
} from '@drydock/archive';
import { fail, retryLater, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import { withSpan } from '../providers/driver-span';
import { forEachAtOnce } from '../providers/for-each-at-once';
import { isArchiveMissing } from '../providers/offsite-errors';
import {
  type OffsiteDrivers,
  OffsiteError,
  type OffsiteReader,
  type OffsiteStorage,
} from '../providers/offsite-storage';
import { type ArchiveAtHand, linksOf } from '../providers/site-host';
import { roomInSpool, type StoredCopy, writtenBytesOf } from './offsite.rules';
import { recordPresence } from './offsite.store';
import { readsAtOnce } from './open-destination';

export type StoredChain = ReadonlyArray<Pick<StoredCopy, 'id' | 'archive'>>;

/** The ids of the copies of a chain, by the state of their manifests. */
interface ChainSeen {
  present: string[];
  missing: string[];
  /** Copies whose manifest does not have the recorded checksum. `present` lists them too. */
  altered: string[];
}

/**
 * Compares the manifests of a chain with their recorded checksums. This needs no archive key. Rejects if the storage
 * refuses or does not answer. The signal `limit` ends the calls of the reader. If the first round of manifests has
 * arrived by then, the storage works and the chain is only long, so the result is what was seen.
 */
export async function lookAtChain(reader: OffsiteReader, chain: StoredChain, limit?: AbortSignal): Promise<ChainSeen> {
  const seen: ChainSeen = { present: [], missing: [], altered: [] };
  const look = async ({ id, archive }: StoredChain[number]): Promise<void> => {
    const found = await reader.manifestSha256(archive.objectKey).catch((error: unknown) => {
      if (isArchiveMissing(error)) return null;
      throw error;
    });
    if (found === null) {
      seen.missing.push(id);
      return;
    }
    seen.present.push(id);
    if (found !== archive.manifestSha256) seen.altered.push(id);
  };
  try {
    await forEachAtOnce(readsAtOnce, chain, look);
  } catch (error) {
    const isLong = limit?.aborted === true && seen.present.length >= readsAtOnce;
    if (!isLong || error instanceof OffsiteError) throw error;
  }
  return seen;
}

type Step = StepContext<unknown, unknown>;

type Spool = { offsite: Pick<OffsiteDrivers, 'spoolDir'> };

const folderOf = ({ offsite }: Spool, { workflowId }: Pick<Step, 'workflowId'>): string =>
  path.join(offsite.spoolDir, workflowId);

/**
 * The archives of the chain, read through the cache on the worker's disk. With `isLastUse` a segment leaves the cache
 * once it was read.
 */
export const spooledChain = (
  context: WorkContext,
  step: Step,
  storage: OffsiteStorage,
  chain: StoredChain,
  { isLastUse = false } = {},
): ArchiveAtHand[] =>
  chain.map(({ id, archive }) => ({
    source: spooledArchive(storage.source(archive.objectKey), spoolFolder(folderOf(context, step), id), isLastUse),
    archiveId: id,
    manifestMac: archive.manifestMac,
  }));

/** The unpacked size of the streams of an archive, in bytes. */
export const streamBytesOf = ({ roots }: Pick<OpenArchive['manifest'], 'roots'>): number =>
  roots.reduce((sum, { kind, raw_bytes: bytes }) => sum + (kind === 'stream' ? bytes : 0), 0);

/**
 * Copies every object of a chain that a restore reads to the worker's disk. The manifests come first. They must match
 * the recorded checksums and form a chain. `assertRoomFor` then gets the most bytes that a restore of the chain can
 * write. Every other object is verified as it arrives, so that an altered object ends the work at once. Permanent
 * failures `copy_chain_incomplete`, `copy_tampered`, and `storage_full` if the spool is too small for the chain.
 * @throws ArchiveError
 */
export async function fetchChain(
  context: WorkContext,
  step: Step,
  storage: OffsiteStorage,
  chain: StoredChain,
  assertRoomFor: (rawBytes: number) => Promise<void>,
): Promise<void> {
  await removeOrphans(context.offsite.spoolDir, context.now().getTime());
  const seen = await lookAtChain(storage, chain);
  await context.database.transaction((tx) => recordPresence(tx, seen, context.now()));
  if (seen.missing.length > 0)
    throw fail('copy_chain_incomplete', { internal: `no manifest of ${seen.missing.join(', ')}` });
  if (seen.altered.length > 0)
    throw fail('copy_tampered', { internal: `another manifest of ${seen.altered.join(', ')}` });
  const links = spooledChain(context, step, storage, chain);
  const archives = await openChain(linksOf(refOf(step), links), context.archiveKey, completeLimits());
  // The sizes come from the manifests, because records of earlier versions do not tell how much of an archive are
  // streams.
  const sizes = archives.map(({ manifest }) => ({
    rawBytes: manifest.raw_bytes,
    streamBytes: streamBytesOf(manifest),
  }));
  await assertRoomFor(writtenBytesOf(sizes));
  const bytesTotal = chain.reduce((sum, { archive }) => sum + archive.sizeBytes, 0);
  await withSpan('offsite.fetch', { 'chain.archives': chain.length, 'chain.size_bytes': bytesTotal }, () =>
    fetchPieces(archives, folderOf(context, step), {
      signal: step.signal,
      progress: step.progress,
      spoolSpace: context.offsite.spoolSpace,
    }),
  );
}

type Fetching = Pick<Step, 'signal' | 'progress'> & Pick<OffsiteDrivers, 'spoolSpace'>;

interface PieceAtHand {
  archive: OpenArchive;
  piece: SealedPiece;
}

/** The bytes that each running fetch of this process has yet to write, by the folder of its workflow. */
const promised = new Map<string, number>();

/**
 * Fetches the objects of the archives into the spool below `folder`. Streams of all archives but the newest are
 * superseded, and their segments are not fetched. The index blocks come first, because they alone tell the sizes of the
 * segments.
 * @throws SpoolFull, ArchiveError, and the permanent failure `storage_full`
 */
export async function fetchPieces(
  archives: readonly OpenArchive[],
  folder: string,
  { signal, progress, spoolSpace }: Fetching,
): Promise<void> {
  /** Checks that the spool has room for the pieces, and promises the room to this fetch. */
  const claimRoom = async (pieces: Iterable<PieceAtHand> | AsyncIterable<PieceAtHand>) => {
    const bytes = { wholeBytes: 0, missingBytes: 0 };
    for await (const { archive, piece } of pieces) {
      bytes.wholeBytes += piece.size;
      const file = path.join(spoolFolder(folder, archive.manifest.archive_id), piece.name);
      if (!(await isThere(file))) bytes.missingBytes += piece.size;
    }
    const space = await spoolSpace();
    const promisedBytes = [...promised].reduce((sum, [other, left]) => sum + (other === folder ? 0 : left), 0);
    const room = roomInSpool({ ...bytes, promisedBytes }, space);
    const told = JSON.stringify({ ...bytes, promisedBytes, ...space });
    if (room === 'later') throw new SpoolFull(told);
    if (room === 'never') throw fail('storage_full', { internal: `the spool: ${told}`, alarm: 'archive_refused' });
    promised.set(folder, bytes.missingBytes);
    return bytes;
  };
  try {
    const blocks = archives.flatMap((archive) => blockPiecesOf(archive).map((piece) => ({ archive, piece })));
    await claimRoom(blocks);
    await forEachAtOnce(readsAtOnce, blocks, ({ archive, piece }) => verifyPiece(archive.source, piece));
    const { wholeBytes, missingBytes } = await claimRoom(piecesOfChain(archives, signal));
    let fetchedBytes = 0;
    await forEachAtOnce(readsAtOnce, piecesOfChain(archives, signal), async ({ archive, piece }) => {
      signal.throwIfAborted();
      await verifyPiece(archive.source, piece);
      fetchedBytes += piece.size;
      promised.set(folder, Math.min(missingBytes, wholeBytes - fetchedBytes));
      progress(fetchedBytes / wholeBytes);
    });
  } finally {
    promised.delete(folder);
  }
}

async function* piecesOfChain(archives: readonly OpenArchive[], signal: AbortSignal): AsyncGenerator<PieceAtHand> {
  for (const archive of archives) {
    const isSuperseded = archive !== archives.at(-1);
    for await (const piece of piecesOf(archive, { isSuperseded, signal })) yield { archive, piece };
  }
}

/** The spool has no room now. {@link onSpool} handles it. */
class SpoolFull extends Error {
  override readonly name = 'SpoolFull';
}

/** The pause before a postponed restore tries again to find room in the spool. */
const spoolPauseSeconds = 60;

/**
 * Runs work that writes to the spool. If the spool has no room now, the restore removes everything that it has spooled,
 * and is postponed. If it kept that, two restores that each fill a half of the spool would wait for each other for
 * ever.
 */
export async function onSpool<T>(
  context: Spool,
  step: Pick<Step, 'workflowId' | 'log'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SpoolFull)) throw error;
    await clearFetched(context, step);
    step.log.warn({ err: error }, 'the spool has no room for a copy now, so the restore waits');
    throw retryLater({ seconds: spoolPauseSeconds });
  }
}

export const clearFetched = (context: Spool, step: Pick<Step, 'workflowId'>): Promise<void> =>
  rm(folderOf(context, step), { recursive: true, force: true });

let spooled = 0;

/**
 * An archive in a customer's storage with a cache on the worker's disk. Every object but the manifest is cached only
 * after its MACs were compared. The cache is not synced to disk, because an object that a crash loses is fetched again.
 * With `isLastUse` a segment is removed once it was read, so that the kernel need not write it when the restored files
 * are synced.
 */
export function spooledArchive(remote: ArchiveSource, folder: string, isLastUse: boolean): Required<ArchiveSource> {
  const local = folderSource(folder);
  const arriving = new Map<string, Promise<void>>();

  const store = async (name: string, bytes: Buffer): Promise<void> => {
    spooled += 1;
    // Each writer has its own file name, because a worker that has lost its lease may still be writing.
    const partial = path.join(folder, `${name}.${process.pid}-${spooled}.partial`);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeFile(partial, bytes, { mode: 0o600 });
      await rename(partial, path.join(folder, name));
    } catch (error) {
      await rm(partial, { force: true });
      throw isDiskFull(error) ? new SpoolFull(String(error), { cause: error }) : error;
    }
  };
  const bringIn = async (piece: SealedPiece): Promise<void> => {
    const bytes = await remote.read(piece.name);
    piece.verify(bytes);
    await store(piece.name, bytes);
    releaseMemory(bytes);
  };
  const bringInOnce = (piece: SealedPiece): Promise<void> => {
    const coming = arriving.get(piece.name) ?? bringIn(piece).finally(() => arriving.delete(piece.name));
    arriving.set(piece.name, coming);
    return coming;
  };
  const readRemote = async (name: string): Promise<Buffer> => {
    const bytes = await remote.read(name);
    // Every step reads the manifest, and the manifest is small, so it is cached. The reader of the archive compares the
    // manifest's MAC with the recorded MAC.
    if (name === manifestName && !isLastUse) await store(name, bytes).catch(ignoreFull);
    return bytes;
  };
  return {
    read: async (name) => {
      await arriving.get(name);
      const bytes = await local.read(name).catch((error: unknown) => {
        if (error instanceof ArchiveError && error.reason === 'missing') return readRemote(name);
        throw error;
      });
      if (isLastUse && isSegment(name)) await rm(path.join(folder, name), { force: true });
      return bytes;
    },
    hold: async (piece) => {
      if (!(await isThere(path.join(folder, piece.name)))) await bringInOnce(piece);
    },
  };
}

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** A manifest that the cache has no room for is read from the storage again. */
function ignoreFull(error: unknown): void {
  if (!(error instanceof SpoolFull)) throw error;
}

const isSegment = (name: string): boolean => name.startsWith('segment-');

/**
 * The folder in which a workflow caches an archive. Each start of the machine has its own folder: after a power failure
 * an object may be on the disk by name but without its content, and must not count as verified.
 */
export const spoolFolder = (workflowFolder: string, archiveId: string, boot = bootId()): string =>
  path.join(workflowFolder, boot, archiveId);

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'boot';
  }
}

/**
 * The age from which a folder counts as left by a dead worker. A restore that runs for longer fetches its objects
 * again.
 */
const orphanMs = 48 * 3_600_000;

/** Removes folders older than `orphanMs`, which workers have left when they died. */
async function removeOrphans(spoolDir: string, nowMs: number): Promise<void> {
  for (const name of await readdir(spoolDir).catch(() => [])) {
    const folder = path.join(spoolDir, name);
    const found = await stat(folder).catch(() => null);
    if (found !== null && nowMs - found.mtimeMs > orphanMs) await rm(folder, { recursive: true, force: true });
  }
}
