import { archiveFailure } from '@drydock/workflow/definition/archive-failures';
import type { Refusal } from '@drydock/workflow/definition/refusal.rules';
import type { HandlerContext } from '../context';
import { OffsiteError } from '../providers/offsite-storage';
import type { Site } from '../sites/site.types';
import { recordPresence } from './copy.store';
import { lookAtChain } from './look-at-chain';
import { type OffsiteWorld, presumably, refuseRestore, restorableChain } from './offsite.rules';
import { lookMs } from './offsite-limits';
import { readOffsiteWorld } from './offsite-state';
import { storageUnavailable } from './storage-problem';

/** The copy with this id. Ids are UUIDs, so any other text names no copy. */
export const findNamed = (copies: OffsiteWorld['copies'], copyId: string) =>
  copies.find(({ id }) => id === copyId.toLowerCase()) ?? null;

/**
 * Checks the chain of the named copy in the customer's storage. Null if every manifest is as it was written.
 * Null too, without asking the storage, if the request is refused for another reason. Missing copies are recorded in
 * our rows.
 */
export async function lookAtStorage(
  context: HandlerContext,
  site: Site,
  copyId: string,
  now: Date,
): Promise<Refusal | null> {
  const { database } = context;
  const known = await readOffsiteWorld(context, database.pool, site);
  const world = { ...known, copies: presumably(known.copies) };
  const copy = findNamed(world.copies, copyId);
  const chain = copy === null ? null : restorableChain(world.copies, copy);
  if (world.destination === null || chain === null || refuseRestore(world, copy) !== null) return null;
  const reader = context.offsite.open(world.destination, { signal: AbortSignal.timeout(lookMs) });
  try {
    const seen = await lookAtChain(reader, chain);
    await database.transaction((tx) => recordPresence(tx, seen, now));
    if (seen.missing.length > 0) return { code: 'copy_chain_incomplete' };
    return seen.altered.length > 0 ? { code: 'copy_tampered' } : null;
  } catch (error) {
    return { ...refusalOf(error) };
  } finally {
    reader.close();
  }
}

function refusalOf(error: unknown): Refusal {
  const failure = error instanceof OffsiteError ? archiveFailure(error.refusal, 'site_copy', error) : undefined;
  return failure === undefined
    ? { code: 'dependency_unavailable', ...storageUnavailable }
    : { code: failure.problem.code };
}
