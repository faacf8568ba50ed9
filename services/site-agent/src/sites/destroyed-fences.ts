import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { refuseStale, rememberFence } from '@drydock/agent/jobs/fence';

/** A destroyed site has no folder. Its fence is kept, so that a late worker cannot bring it back. */
export class DestroyedFences {
  private readonly folder: string;

  constructor(sitesDir: string) {
    this.folder = path.join(sitesDir, 'destroyed');
  }

  /** Throws `stale_fence` for a claim that is older than the destruction. */
  async admit(siteId: string, fence: string): Promise<void> {
    await refuseStale(path.join(this.folder, siteId), fence);
  }

  async remember(siteId: string, fence: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await rememberFence(path.join(this.folder, siteId), fence);
  }
}
