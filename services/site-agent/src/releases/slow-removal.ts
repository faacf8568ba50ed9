import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { FairPlaces } from '@drydock/agent/host';
import { runChildJob } from '@drydock/agent/jobs';
import { type BoxRight, errorCodeOf, type Isolation } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import { metrics, type ObservableResult } from '@opentelemetry/api';
import { z } from 'zod';
import type { SiteRecord } from '../on-disk/site-folder';
import { countTree, filesPathIn, startSiteProgram } from './site-box';

/**
 * A folder in the trash loses 25 files in 100 ms. After faster mass deletes, creating files on ext4 was measured to be
 * 2 to 4 times slower. After `turn_files` files, which take a minute, the folder gives its place up to others.
 */
const usualPace = { batch_files: 25, pause_ms: 100, turn_files: 15_000 };
export type RemovalPace = typeof usualPace;
/** The most folders that are emptied at a time, shared between organisations. */
const atOnceMax = 4;
/** A site with fewer folders than this in `waiting` gets its next release at once, however large the folders are. */
const waitingMax = 2;
/** The pause before leftovers are tried again. It doubles with each try, up to five hours and twenty minutes. */
const usualAgainMs = 600_000;
const doublingsMost = 5;
const dayMs = 86_400_000;
/** An account that owns nothing. */
const nobody = 65_534;

const emptiedSchema = z.strictObject({ left: z.int(), named: z.array(z.string()), isOver: z.boolean() });
type Emptied = z.infer<typeof emptiedSchema>;
const nothingLeft: Emptied = { left: 0, named: [], isOver: false };
const nothingDone: Emptied = { left: 1, named: [], isOver: false };

interface RemovalSettings {
  /** The bytes that a site may have in the trash before its next release waits. */
  siteBytes?: number;
  pace?: RemovalPace | undefined;
  againMs?: number;
}

interface WaitingFolder {
  folder: string;
  /** Resolves at the end of the first try to remove the folder. */
  tried: Promise<void>;
  /** The bytes at the last count, or null. A folder in the trash only shrinks, so this is the most that it has. */
  bytesMost: number | null;
}

type Owner = Pick<SiteRecord, 'site_id' | 'organisation_id'>;

const oldest = metrics.getMeter('@drydock/site-agent').createObservableGauge('site_trash.oldest', {
  unit: 's',
  description: 'Since when the oldest folder lies in the trash that is not removed yet',
});

/**
 * Moves folders of sites and releases to the trash at once and deletes them slowly, also after a restart. A child
 * deletes the customers' files under the account that owns them, in a box where one can be made. The account cannot
 * remove files of root. If the site agent is root and boxes can be made, a second child with root's rights over files
 * removes these, in a box that shows nothing else. The log names the files that still remain, and they are tried again.
 */
export class SlowRemoval {
  private readonly folder: string;
  private readonly isolation: Isolation;
  private readonly log: Log;
  private readonly siteBytes: number;
  private readonly pace: RemovalPace;
  private readonly againMs: number;
  private readonly places = new FairPlaces(atOnceMax);
  private readonly running = new Set<Promise<void>>();
  /** The folders of each site whose first try of removal has not ended. */
  private readonly waiting = new Map<string, Set<WaitingFolder>>();
  private readonly stopping = new AbortController();
  /** Each folder in the trash, with the time of its arrival. */
  private readonly since = new Map<string, number>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly observe = (result: ObservableResult): void => result.observe(this.oldestSeconds);

  constructor(sitesDir: string, isolation: Isolation, log: Log, settings: RemovalSettings = {}) {
    this.siteBytes = settings.siteBytes ?? 0;
    this.pace = settings.pace ?? usualPace;
    this.againMs = settings.againMs ?? usualAgainMs;
    this.folder = path.join(sitesDir, 'trash');
    this.isolation = isolation;
    this.log = log;
    oldest.addCallback(this.observe);
  }

  /** Continues with the folders that an earlier process left. */
  async resume(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.folder)) {
      const folder = path.join(this.folder, name);
      this.since.set(folder, await movedAsideAt(folder));
      void this.begin(folder, name, 0);
    }
  }

  /** Moves the folder away; its files are deleted later. No error if the folder does not exist. */
  async moveAside(folder: string, { site_id: siteId, organisation_id: organisation = siteId }: Owner): Promise<void> {
    const now = Date.now();
    const aside = path.join(this.folder, `${path.basename(folder)}.${now}-${randomBytes(6).toString('hex')}`);
    try {
      await rename(folder, aside);
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return;
      throw error;
    }
    this.since.set(aside, now);
    const ofSite = this.waiting.get(siteId) ?? new Set<WaitingFolder>();
    this.waiting.set(siteId, ofSite);
    const waiting: WaitingFolder = { folder: aside, tried: this.begin(aside, organisation, 0), bytesMost: null };
    ofSite.add(waiting);
    void waiting.tried.then(() => {
      ofSite.delete(waiting);
      if (ofSite.size === 0 && this.waiting.get(siteId) === ofSite) this.waiting.delete(siteId);
    });
  }

  /**
   * Resolves when fewer than two folders of the site wait to be emptied, or when all of them together take no more than
   * `siteBytes`. Otherwise a site could fill the disk with releases of many small files, because a release is dropped
   * faster than its files are deleted. Rejects with the signal's reason.
   */
  async waitForRoom(siteId: string, signal: AbortSignal): Promise<void> {
    const aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    aborted.catch(() => undefined);
    for (;;) {
      const waiting = this.waiting.get(siteId);
      if (waiting === undefined || waiting.size < waitingMax) return;
      const folders = [...waiting];
      if (await this.isSmall(folders)) return;
      await Promise.race([...folders.map(({ tried }) => tried), aborted]);
    }
  }

  private async isSmall(folders: readonly WaitingFolder[]): Promise<boolean> {
    const isFirstCount = folders.every(({ bytesMost }) => bytesMost === null);
    let bytes = 0;
    for (const waiting of folders) {
      waiting.bytesMost ??= await this.bytesIn(waiting.folder);
      bytes += waiting.bytesMost;
    }
    if (bytes <= this.siteBytes) return true;
    for (const waiting of folders) waiting.bytesMost = null;
    return isFirstCount ? false : this.isSmall(folders);
  }

  private async bytesIn(folder: string): Promise<number> {
    let bytes = 0;
    for (const files of await filesFoldersIn(folder)) bytes += await this.bytesOf(files);
    return bytes;
  }

  /** The bytes of the files on disk. Infinity for files that cannot be counted, such as files of root. */
  private async bytesOf(files: string): Promise<number> {
    try {
      const { uid } = await lstat(files);
      const account = process.getuid?.() === 0 ? uid : null;
      const counted = account === 0 ? null : await countTree({ isolation: this.isolation, uid: account }, files);
      return counted ?? Number.POSITIVE_INFINITY;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return 0;
      this.log.warn({ err: error }, 'a folder in the trash could not be counted');
      return Number.POSITIVE_INFINITY;
    }
  }

  /** The age of the oldest folder in the trash; 0 without one. */
  get oldestSeconds(): number {
    const now = Date.now();
    return [...this.since.values()].reduce((age, at) => Math.max(age, (now - at) / 1_000), 0);
  }

  /** Resolves when the removal of each folder was tried. Leftovers wait for the next try. */
  async untilTried(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    for (const timer of this.timers) clearTimeout(timer);
    oldest.removeCallback(this.observe);
    await this.untilTried();
  }

  /** Resolves at the end of a try to remove the folder. Never rejects. */
  private begin(folder: string, owner: string, attempt: number): Promise<void> {
    const run = this.removeInTurns(folder, owner).then(
      ({ left, named }) => {
        if (left === 0) this.since.delete(folder);
        else this.tryAgain(folder, { owner, attempt }, { left, named });
      },
      (error: unknown) => this.tryAgain(folder, { owner, attempt }, { err: error }),
    );
    this.running.add(run);
    return run.finally(() => this.running.delete(run));
  }

  private async removeInTurns(folder: string, owner: string): Promise<Emptied> {
    for (;;) {
      const leave = await this.places.take(owner, this.stopping.signal);
      const emptied = await this.remove(folder).finally(leave);
      if (!emptied.isOver) return emptied;
    }
  }

  /**
   * Logs why a folder is not removed, and plans the next try. Once the folder has been in the trash for a day, the log
   * line is an alarm. Until then, remaining files are a warning, and a failed child is an error.
   */
  private tryAgain(
    folder: string,
    { owner, attempt }: { owner: string; attempt: number },
    why: { left: number; named: string[] } | { err: unknown },
  ): void {
    if (this.stopping.signal.aborted) return;
    const pauseMs = this.againMs * 2 ** Math.min(attempt, doublingsMost);
    const isOld = Date.now() - (this.since.get(folder) ?? 0) > dayMs;
    const told = {
      folder: path.basename(folder),
      ...why,
      again_in_seconds: pauseMs / 1_000,
      ...(isOld && { alarm: 'trash_not_removed' }),
    };
    this.log[isOld || 'err' in why ? 'error' : 'warn'](told, 'old files could not be removed; they are tried again');
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      void this.begin(folder, owner, attempt + 1);
    }, pauseMs);
    this.timers.add(timer.unref());
  }

  private async remove(folder: string): Promise<Emptied> {
    let rest = nothingLeft;
    for (const files of await filesFoldersIn(folder)) {
      const { left, named, isOver } = await this.removeFiles(files);
      if (isOver) return { left, named, isOver };
      rest = { ...rest, left: rest.left + left, named: [...rest.named, ...named] };
    }
    // When the customers' files are gone, only the site agent's own files and empty folders are left.
    if (rest.left === 0) await rm(folder, { recursive: true, force: true });
    return rest;
  }

  private async removeFiles(dir: string): Promise<Emptied> {
    const { uid } = await lstat(dir);
    const isRoot = process.getuid?.() === 0;
    const isOurs = isRoot && uid === 0;
    const hasBoxes = this.isolation.kind !== 'none';
    // Without boxes, files of root are the site agent's own, so no child has to remove them.
    if (isOurs && !hasBoxes) return nothingLeft;
    let emptied = isOurs ? nothingDone : await this.empty(dir, isRoot ? uid : null);
    if (emptied.isOver) return emptied;
    if (emptied.left > 0 && isRoot && hasBoxes) emptied = await this.empty(dir, nobody, ['dac_override', 'fowner']);
    // `rmdir` fails if a child left a file that it did not report. The caller deletes the rest with all rights of this
    // process, so no customer's file may be left.
    if (emptied.left === 0 && !emptied.isOver) await rmdir(dir);
    return emptied;
  }

  private empty(dir: string, account: number | null, rights: readonly BoxRight[] = []): Promise<Emptied> {
    const { isolation } = this;
    return runChildJob({
      start: (stdio) =>
        startSiteProgram(
          {
            isolation,
            uid: account,
            rights,
            program: 'releases/empty-folder.program.js',
            files: { dir, writable: true },
          },
          stdio,
        ),
      setup: { dir: filesPathIn(isolation, dir), ...this.pace },
      channel: null,
      signal: this.stopping.signal,
      progress: () => undefined,
      result: emptiedSchema,
    });
  }
}

/**
 * Returns the time, in milliseconds since 1970, when a folder was moved aside. The folder's name contains it. For a
 * folder of an earlier version, the folder's ctime is used.
 */
async function movedAsideAt(folder: string): Promise<number> {
  const inName = /\.(\d{13})-[0-9a-f]{12}$/.exec(folder)?.[1];
  return inName === undefined ? (await lstat(folder)).ctimeMs : Number(inName);
}

/**
 * Finds the folders of customers' files in a folder of a site or of a release. All folders above them are the site
 * agent's own.
 */
async function filesFoldersIn(folder: string): Promise<string[]> {
  const releases = await namesIn(path.join(folder, 'releases'));
  const candidates = [folder, ...releases.map((name) => path.join(folder, 'releases', name))].map((release) =>
    path.join(release, 'files'),
  );
  const found = await Promise.all(candidates.map(async (files) => ((await isFolder(files)) ? [files] : [])));
  return found.flat();
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(errorCodeOf(error))) return [];
    throw error;
  });
}

async function isFolder(folder: string): Promise<boolean> {
  return lstat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
