import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { SerialQueue } from '@drydock/agent/host/serial-queue';
import { runChildJob } from '@drydock/agent/jobs/child-job';
import { errorCodeOf } from '@drydock/process/error-code';
import type { Isolation } from '@drydock/process/isolation';
import type { Log } from '@drydock/service/telemetry/log';
import { z } from 'zod';
import { filesPathIn, startSiteProgram } from '../sites/site-box';

/** 50 files each 100 ms: creating files on ext4 soon after a mass delete was measured 2 to 4 times slower. */
const usualPace = { batch_files: 50, pause_ms: 100 };

/**
 * Moves folders out of the way at once and deletes them slowly, one after the other; what a restart interrupts is taken up again. A folder is a site's or a release's as
 * SiteFolder describes them: the files of customers in it are deleted by a child in a box, as the account that they belong to; the rest is ours.
 */
export class SlowRemoval {
  private readonly folder: string;
  private readonly isolation: Isolation;
  private readonly log: Log;
  private readonly pace: typeof usualPace;
  private readonly queue = new SerialQueue();
  private readonly stopping = new AbortController();

  constructor(sitesDir: string, isolation: Isolation, log: Log, pace = usualPace) {
    this.pace = pace;
    this.folder = path.join(sitesDir, 'trash');
    this.isolation = isolation;
    this.log = log;
  }

  /** Takes up what an earlier process left. */
  async resume(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.folder)) this.enqueue(path.join(this.folder, name));
  }

  /** After this the folder is gone from its place; its files go in their own time. No error when there is none. */
  async moveAside(folder: string): Promise<void> {
    const aside = path.join(this.folder, `${path.basename(folder)}.${randomBytes(6).toString('hex')}`);
    try {
      await rename(folder, aside);
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return;
      throw error;
    }
    this.enqueue(aside);
  }

  /** Resolves when nothing is left to delete. */
  async settle(): Promise<void> {
    await this.queue.run(() => Promise.resolve());
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.settle();
  }

  private enqueue(folder: string): void {
    this.queue
      .run(() => this.remove(folder))
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.log.error({ err: error }, 'old files could not be deleted; the next start tries again');
      });
  }

  private async remove(folder: string): Promise<void> {
    for (const files of await filesFoldersIn(folder)) await this.empty(files);
    // What is left are our own files and folders of ours that are empty now.
    await rm(folder, { recursive: true, force: true });
  }

  private async empty(dir: string): Promise<void> {
    const { uid } = await lstat(dir);
    const { signal } = this.stopping;
    const isRoot = process.getuid?.() === 0;
    // Files that are root's own were never a site's: no code of a customer could change them.
    if (isRoot && uid === 0) return;
    const account = isRoot ? uid : null;
    await runChildJob({
      start: (stdio) =>
        startSiteProgram(
          { isolation: this.isolation, uid: account, program: 'releases/empty-folder.program.js', files: { dir, writable: true } },
          stdio,
        ),
      setup: { dir: filesPathIn(this.isolation, dir), ...this.pace },
      channel: null,
      signal,
      progress: () => undefined,
      result: z.strictObject({ removed: z.int() }),
    });
  }
}

/** The folders of customers' files in a folder of a site or of a release. All on the way to them are ours. */
async function filesFoldersIn(folder: string): Promise<string[]> {
  const releases = await namesIn(path.join(folder, 'releases'));
  const candidates = [folder, ...releases.map((name) => path.join(folder, 'releases', name))].map((release) => path.join(release, 'files'));
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
