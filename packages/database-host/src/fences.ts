import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { readIfThere, writeDurably } from '@drydock/site-host/durable-file';
import { DatabaseHostError } from './database-host-error';

/**
 * The highest fence of each database, on disk before anything is done in its name, and kept after the database has gone: a worker that was taken for dead and wakes up
 * later can change nothing, nor bring a database back.
 */
export class Fences {
  private readonly folder: string;

  constructor(databasesDir: string) {
    this.folder = path.join(databasesDir, 'fences');
  }

  /** Throws `stale_fence` unless the claim is the newest that was seen. */
  async admit(databaseId: string, fence: string): Promise<void> {
    const file = path.join(this.folder, databaseId);
    const highest = BigInt((await readIfThere(file))?.trim() ?? '0');
    const claimed = BigInt(fence);
    if (claimed < highest) throw new DatabaseHostError('stale_fence', `fence ${fence} is older than ${highest}`);
    if (claimed === highest) return;
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await writeDurably(file, `${claimed}\n`);
  }
}
