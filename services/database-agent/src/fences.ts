import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { admitFence } from '@drydock/agent/jobs/fence';

/** The fences of this host's databases, kept after a database has gone: a late worker cannot bring one back. */
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
