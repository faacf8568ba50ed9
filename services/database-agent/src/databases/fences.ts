import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { admitFence } from '@drydock/agent/jobs/fence';

/**
 * The latest fence of each database, kept even after the database is gone, so that a late worker cannot bring it back.
 */
export class Fences {
  private readonly folder: string;

  constructor(databasesDir: string) {
    this.folder = path.join(databasesDir, 'fences');
  }

  /** Throws `stale_fence`. */
  async admit(databaseId: string, fence: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await admitFence(path.join(this.folder, databaseId), fence);
  }
}
