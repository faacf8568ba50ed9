import { readIfThere, writeDurably } from '@drydock/process/durable-file';
import { HostError } from '../host/host-error';

/** The newest claim that was ever admitted, or 0 before the first. */
async function readFence(file: string): Promise<bigint> {
  const text = await readIfThere(file);
  return text === null ? 0n : BigInt(text.trim());
}

/**
 * Throws `stale_fence` for a claim older than the newest that was seen. Returns true for a claim that is newer than it.
 */
export async function refuseStale(file: string, fence: string): Promise<boolean> {
  const highest = await readFence(file);
  const claimed = BigInt(fence);
  if (claimed < highest) throw new HostError('stale_fence', `fence ${fence} is older than ${highest}`);
  return claimed > highest;
}

export const rememberFence = (file: string, fence: string): Promise<void> => writeDurably(file, `${BigInt(fence)}\n`);

/**
 * Admits a claim unless a newer one has been seen, and writes it to disk before anything is done under it. So a worker
 * that was thought dead and wakes up later can change nothing, not even after a restart of this process. Throws
 * `stale_fence`.
 */
export async function admitFence(file: string, fence: string): Promise<void> {
  if (await refuseStale(file, fence)) await rememberFence(file, fence);
}
