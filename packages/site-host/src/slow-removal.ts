import { randomBytes } from 'node:crypto';
import { mkdir, opendir, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { errorCodeOf } from '@drydock/host-kit/error-code';
import { SerialQueue } from '@drydock/host-kit/serial-queue';
import type { Log } from '@drydock/service-kit/log';

const batchFiles = 50;
/** 50 files each 100 ms: creating files on ext4 soon after a mass delete was measured 2 to 4 times slower. */
const pauseMs = 100;

/** Moves folders out of the way at once and deletes them slowly, one after the other; what a restart interrupts is taken up again. */
export class SlowRemoval {
  private readonly folder: string;
  private readonly log: Log;
  private readonly queue = new SerialQueue();
  private readonly stopping = new AbortController();
  private removed = 0;

  constructor(sitesDir: string, log: Log) {
    this.folder = path.join(sitesDir, 'trash');
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
      .run(() => this.removeTree(folder))
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.log.error({ err: error }, 'old files could not be deleted; the next start tries again');
      });
  }

  private async removeTree(folder: string): Promise<void> {
    for await (const entry of await opendir(folder)) {
      const file = path.join(folder, entry.name);
      // Never through a link: only the name itself goes.
      if (entry.isDirectory()) await this.removeTree(file);
      else await unlink(file);
      await this.pace();
    }
    await rmdir(folder);
  }

  private async pace(): Promise<void> {
    this.stopping.signal.throwIfAborted();
    this.removed++;
    if (this.removed % batchFiles === 0) await wait(pauseMs, undefined, { signal: this.stopping.signal });
  }
}
