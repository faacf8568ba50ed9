import { rm } from 'node:fs/promises';
import path from 'node:path';
import { completeLimits } from '@drydock/archive/archive-limits';
import { blockName, segmentName } from '@drydock/archive/archive-objects';
import type { OpenArchive } from '@drydock/archive/open-archive';
import { openChain } from '@drydock/archive/open-chain';
import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import { withSpan } from '../providers/driver-span';
import { forEachAtOnce } from '../providers/for-each-at-once';
import type { OffsiteStorage } from '../providers/offsite-storage';
import { type ArchiveAtHand, linksOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import { recordPresence } from './copy.store';
import { lookAtChain, type StoredChain } from './look-at-chain';
import { readsAtOnce } from './offsite-limits';
import { removeOrphans, type SpooledArchive, spooledArchive } from './spool';

type Step = StepContext<unknown, unknown>;

const folderOf = (context: WorkContext, { workflowId }: Step): string => path.join(context.offsite.spoolDir, workflowId);

export interface SpooledLink extends ArchiveAtHand {
  source: SpooledArchive;
}

/** The chain as the later steps read it: from our disk, and what is missing there from the customer's storage. */
export const spooledChain = (
  context: WorkContext,
  step: Step,
  storage: OffsiteStorage,
  chain: StoredChain,
  { isLastUse = false } = {},
): SpooledLink[] =>
  chain.map(({ id, archive }) => ({
    source: spooledArchive(storage.source(archive.objectKey), path.join(folderOf(context, step), id), isLastUse),
    archiveId: id,
    manifestMac: archive.manifestMac,
  }));

/**
 * Brings every object of a chain to our disk. The manifests come first: they are there, are those on record and fit together before anything
 * else is read. Fails for good with `copy_chain_incomplete`.
 */
export async function fetchChain(context: WorkContext, step: Step, storage: OffsiteStorage, chain: StoredChain): Promise<void> {
  await removeOrphans(context.offsite.spoolDir, context.now().getTime());
  const seen = await lookAtChain(storage, chain);
  await recordPresence(context.database.pool, seen, context.now());
  if (seen.missing.length > 0) throw fail('copy_chain_incomplete', { internal: `no manifest of ${seen.missing.join(', ')}` });
  if (seen.altered.length > 0) throw fail('copy_tampered', { internal: `another manifest of ${seen.altered.join(', ')}` });
  const links = spooledChain(context, step, storage, chain);
  const archives = await openChain(linksOf(refOf(step), links), context.archiveKey, completeLimits());
  const bytesTotal = chain.reduce((sum, { archive }) => sum + archive.sizeBytes, 0);
  let bytes = 0;
  const objects = archives.flatMap((archive, at) => {
    const source = links[at]?.source;
    return source === undefined ? [] : namesOf(archive).map((name) => ({ source, name }));
  });
  await withSpan('offsite.fetch', { 'chain.archives': chain.length, 'chain.size_bytes': bytesTotal }, () =>
    forEachAtOnce(readsAtOnce, objects, async ({ source, name }) => {
      step.signal.throwIfAborted();
      bytes += await source.fetch(name);
      step.progress(Math.min(1, bytes / bytesTotal));
    }),
  );
}

function namesOf({ manifest }: OpenArchive): string[] {
  const blocks = manifest.blocks.map((_block, number) => blockName(number));
  return [...blocks, ...Array.from({ length: manifest.segments }, (_none, number) => segmentName(number))];
}

/** Removes what was fetched. Not there is no error. */
export const clearFetched = (context: WorkContext, step: Step): Promise<void> =>
  rm(folderOf(context, step), { recursive: true, force: true });
