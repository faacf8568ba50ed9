import { readIfThere, writeDurably } from '@drydock/process/durable-file';
import { HostError } from '../host/host-error';

/** The newest claim that was ever let in; 0 before the first. */
async function readFence(file: string): Promise<bigint> {
  const text = await readIfThere(file);
  return text === null ? 0n : BigInt(text.trim());
}

/** Throws `stale_fence` for a claim that is older than the newest seen; true for one that is newer still. */
export async function refuseStale(file: string, fence: string): Promise<boolean> {
  const highest = await readFence(file);
  const claimed = BigInt(fence);
  if (claimed < highest) throw new HostError('stale_fence', `fence ${fence} is older than ${highest}`);
  return claimed > highest;
}

export const rememberFence = (file: string, fence: string): Promise<void> => writeDurably(file, `${BigInt(fence)}\n`);

/**
 * Lets a claim in unless a newer one has been seen, and remembers it on disk before anything is done in its name: a worker that was taken for dead
 * and wakes up later can change nothing, not even after a restart of this process. Throws `stale_fence`.
 */
export async function admitFence(file: string, fence: string): Promise<void> {
  if (await refuseStale(file, fence)) await rememberFence(file, fence);
}
