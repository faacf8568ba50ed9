import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { readIfThere, writeDurably } from './durable-file';
import { SiteHostError } from './site-host-error';

async function readFence(file: string): Promise<bigint> {
  const text = await readIfThere(file);
  return text === null ? 0n : BigInt(text.trim());
}

/**
 * Lets a claim in unless a newer one has been seen, and remembers it on disk before anything is done in its name: a worker that was taken for dead
 * and wakes up later can change nothing, not even after a restart of this process. Throws `stale_fence`.
 */
export async function admitFence(file: string, fence: string): Promise<void> {
  const highest = await readFence(file);
  const claimed = BigInt(fence);
  if (claimed < highest) throw new SiteHostError('stale_fence', `fence ${fence} is older than ${highest}`);
  if (claimed > highest) await writeDurably(file, `${claimed}\n`);
}

/** A destroyed site has no folder; its fence outlives it, so that a late worker cannot bring it back. */
export class DestroyedFences {
  private readonly folder: string;

  constructor(sitesDir: string) {
    this.folder = path.join(sitesDir, 'destroyed');
  }

  async admit(siteId: string, fence: string): Promise<void> {
    const highest = await readFence(path.join(this.folder, siteId));
    if (BigInt(fence) < highest) throw new SiteHostError('stale_fence', `fence ${fence} is older than the destruction by ${highest}`);
  }

  async remember(siteId: string, fence: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await writeDurably(path.join(this.folder, siteId), `${fence}\n`);
  }
}
