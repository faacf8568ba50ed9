import { chmodSync, chownSync, lchownSync, linkSync, symlinkSync } from 'node:fs';
import { lstat, mkdir, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DeepPaths } from '../files/deep-paths';
import { cPath, libc, setPathTime } from '../files/libc';
import { giveAccessLists, giveUserAttributes, lostParts } from '../files/metadata';
import { asWriteError, refuse, systemErrorCode } from '../format/archive-error';
import type { ArchiveKey } from '../format/archive-keys';
import { type ArchiveLimits, completeLimits } from '../format/archive-limits';
import { decodeAttributes, type Entry } from '../format/entry';
import { fileCallPath, textOfBytes } from '../format/path-bytes';
import type { SkippedPath } from '../pack/pack-roots';
import { type CheckedTree, checkTree } from '../read/check-tree';
import { mergeTree } from '../read/merge-tree';
import { type ArchiveLink, type OpenArchive, openChain } from '../read/open-archive';
import { createPace, type Pace } from '../read/pace';
import { type LostPath, type Owner, runWorkers } from './extract-workers';

/**
 * Creates the directory to extract into, with mode 0700. An existing directory must be empty.
 * @throws ArchiveError `staging_not_empty`
 */
async function prepareStaging(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  });
  const stat = await lstat(directory);
  if (!stat.isDirectory()) refuse('staging_not_empty', 'the target is not a directory');
  if ((await readdir(directory)).length > 0) refuse('staging_not_empty', 'the target directory holds something');
}

/** Tells whether the directory's file system ignores differences of case or Unicode normalisation in names. */
async function probeFolding(directory: string): Promise<boolean> {
  const probes: [string, string][] = [
    ['drydock-probe-a', 'DRYDOCK-PROBE-A'],
    ['drydock-probe-\u00e9', 'drydock-probe-e\u0301'],
  ];
  for (const [written, asked] of probes) {
    await writeFile(join(directory, written), '', { flag: 'wx' });
    const found = await lstat(join(directory, asked)).catch(() => null);
    await rm(join(directory, written));
    if (found !== null) return true;
  }
  return false;
}

/** Checks the free space. @throws ArchiveError `no_space` when the content alone would not fit */
export async function checkSpace(directory: string, rawBytes: number): Promise<void> {
  const space = await statfs(directory);
  if (space.bavail * space.bsize < rawBytes) refuse('no_space', `${rawBytes} bytes do not fit`);
}

interface ExtractProgress {
  entries: number;
  entriesTotal: number;
  rawBytes: number;
  rawBytesTotal: number;
}

export interface ExtractOptions {
  /** The archives of the chain, the full archive first. */
  chain: readonly ArchiveLink[];
  key: ArchiveKey;
  /**
   * The absolute target directory of each tree root. The directory must be empty, or missing in an existing parent
   * directory.
   */
  roots: Readonly<Record<string, string>>;
  /**
   * The owner of all extracted paths. Setting an owner needs the right to change owners. The default is this process's
   * user.
   */
  owner?: Owner;
  limits?: Partial<ArchiveLimits>;
  /** The number of worker threads, by default two. More than two gain nothing. */
  workers?: number;
  /**
   * Tells whether the target's file system ignores case or Unicode normalisation in names. By default a trial with test
   * files decides.
   */
  foldsNames?: boolean;
  signal?: AbortSignal;
  onProgress?: (progress: ExtractProgress) => void;
  /** Called each time the file system refuses a path or a part of it. `lostParts` has the possible reasons. */
  onLost?: (lost: SkippedPath) => void;
}

interface ExtractResult {
  entries: number;
  rawBytes: number;
}

/**
 * Extracts tree roots of a chain into empty directories. All manifests, chain links and index entries of these roots
 * are verified before the first path is written. A segment is verified before it is decoded, and the SHA-256 of each
 * file is compared. When the promise settles, nothing writes any more. The caller then syncs the file system, or
 * removes the targets after a rejection. @throws ArchiveError, or the signal's reason
 */
export async function extract(options: ExtractOptions): Promise<ExtractResult> {
  const archives = await openChain(options.chain, options.key, completeLimits(options.limits));
  const targets = await prepareTargets(options);
  // The check writes nothing, so it may go on for a moment after an abort.
  const checking = checkTargets(archives, targets, options);
  checking.catch(() => undefined); // `writeTree` awaits this promise, and reports its rejection
  const done = { entries: 0, rawBytes: 0 };
  for (const [root, directory] of Object.entries(options.roots)) {
    const onProgress = (
      step: ExtractResult,
      { entries: entriesTotal, rawBytes: rawBytesTotal }: ExtractResult,
    ): void => {
      done.entries += step.entries;
      done.rawBytes += step.rawBytes;
      options.onProgress?.({ ...done, entriesTotal, rawBytesTotal });
    };
    await writeTree(archives, { root, directory, checking }, options, onProgress);
  }
  const { entries, rawBytes } = await checking;
  return { entries, rawBytes };
}

interface CheckedTargets extends ExtractResult {
  tasks: Map<string, CheckedTree['tasks']>;
}

interface Target {
  root: string;
  directory: string;
  /** Whether the file system of the directory ignores case or Unicode normalisation in names. */
  folds: boolean;
}

/**
 * Creates the target directory of each root, and tests whether the file system there ignores case or Unicode
 * normalisation in names.
 */
async function prepareTargets({ roots, foldsNames }: ExtractOptions): Promise<Target[]> {
  const targets: Target[] = [];
  for (const [root, directory] of Object.entries(roots)) {
    if (!directory.startsWith('/')) throw new TypeError('the target of a root is an absolute path');
    await prepareStaging(directory).catch((error: unknown) => Promise.reject(asWriteError(error)));
    targets.push({ root, directory, folds: foldsNames ?? (await probeFolding(directory)) });
  }
  return targets;
}

/** Checks all roots before the first path of any of them is written. */
async function checkTargets(
  archives: readonly OpenArchive[],
  targets: readonly Target[],
  options: ExtractOptions,
): Promise<CheckedTargets> {
  const checked: CheckedTargets = { entries: 0, rawBytes: 0, tasks: new Map() };
  for (const { root, directory, folds } of targets) {
    const tree = await checkTree(archives, root, {
      limits: completeLimits(options.limits),
      folds,
      ...(options.signal && { signal: options.signal }),
    });
    await checkSpace(directory, tree.rawBytes);
    checked.entries += tree.entries;
    checked.rawBytes += tree.rawBytes;
    checked.tasks.set(root, tree.tasks);
  }
  return checked;
}

async function writeTree(
  archives: readonly OpenArchive[],
  target: { root: string; directory: string; checking: Promise<CheckedTargets> },
  options: ExtractOptions,
  onProgress: (step: ExtractResult, totals: ExtractResult) => void,
): Promise<void> {
  const { root, directory, checking } = target;
  const signal = options.signal && { signal: options.signal };
  const owner = options.owner ?? null;
  const setup = { directory, root, archives: archives.map(({ keys }) => keys), owner, umask: process.umask() };
  const tasks = async () => (await checking).tasks.get(root) ?? [];
  const onLost = ({ path, part }: LostPath): void => options.onLost?.({ path: textOfBytes(path), reason: part });
  const report = async (step: ExtractResult) => onProgress(step, await checking);
  const onDone = (step: ExtractResult & { lost: readonly LostPath[] }): void => {
    step.lost.forEach(onLost);
    void report(step);
  };
  await runWorkers({ archives, tasks, setup, workers: options.workers ?? 2, onProgress: onDone, ...signal });
  try {
    await finishTree(archives, root, { directory, owner, pace: createPace(options.signal), onLost, ...signal });
  } catch (error) {
    throw systemErrorCode(error) === '' ? error : asWriteError(error);
  }
}

export interface FinishOptions {
  directory: string;
  owner: Owner | null;
  pace: Pace;
  onLost: (lost: LostPath) => void;
  signal?: AbortSignal;
}

/**
 * Completes an extracted tree: creates links and FIFOs, and gives directories their owner, mode and time after their
 * content. Memory holds only the directories above the current path.
 */
async function finishTree(archives: readonly OpenArchive[], root: string, options: FinishOptions): Promise<void> {
  const tree = new FinishedTree(options);
  try {
    for await (const batch of mergeTree(archives, root, options.signal)) {
      for (const { entry } of batch) {
        tree.take(entry);
        await options.pace();
      }
    }
    tree.finish();
  } finally {
    tree.close();
  }
}

class FinishedTree {
  private readonly options: FinishOptions;
  private readonly places: DeepPaths;
  /**
   * Names the targets of hard links. A second instance is needed, because the next call of `places.at` would invalidate
   * the name of the link.
   */
  private readonly sharedPlaces: DeepPaths;
  private readonly open: Entry[] = [];

  constructor(options: FinishOptions) {
    this.options = options;
    this.places = new DeepPaths(options.directory);
    this.sharedPlaces = new DeepPaths(options.directory);
  }

  take(entry: Entry): void {
    for (
      let top = this.open.at(-1);
      top !== undefined && !entry.path.startsWith(`${top.path}/`);
      top = this.open.at(-1)
    ) {
      this.finishDirectory(top);
      this.open.pop();
    }
    if (entry.type === 'directory') this.open.push(entry);
    else if (entry.type !== 'file') this.makeLink(entry);
  }

  finish(): void {
    for (const directory of this.open.splice(0).reverse()) this.finishDirectory(directory);
  }

  close(): void {
    this.places.close();
    this.sharedPlaces.close();
  }

  private makeLink(entry: Entry): void {
    const { owner } = this.options;
    const location = this.places.at(entry.path);
    if (entry.type === 'hardlink') {
      linkSync(this.sharedPlaces.at(entry.link), location);
      return;
    }
    if (entry.type === 'fifo') {
      this.makeFifo(entry, location);
      return;
    }
    symlinkSync(fileCallPath(entry.link), location);
    if (owner !== null) lchownSync(location, owner.uid, owner.gid);
    setPathTime(location, entry);
  }

  private makeFifo(entry: Entry, location: string | Buffer): void {
    if (libc === null || libc.mkfifo(cPath(location), 0o600) !== 0)
      this.options.onLost({ path: entry.path, part: lostParts.noFifo });
    else this.givePath(entry, location);
  }

  private finishDirectory(entry: Entry): void {
    this.givePath(entry, this.places.at(entry.path));
  }

  private givePath(entry: Entry, location: string | Buffer): void {
    const { owner, onLost } = this.options;
    const attributes = decodeAttributes(entry.attributes);
    const lose = (part: LostPath['part']): void => onLost({ path: entry.path, part });
    if (owner !== null) chownSync(location, owner.uid, owner.gid);
    giveUserAttributes(location, attributes, lose);
    chmodSync(location, entry.mode);
    giveAccessLists(location, attributes, lose);
    setPathTime(location, entry);
  }
}
