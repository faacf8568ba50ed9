import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { completeLimits } from '@drydock/archive/format/archive-limits';
import { manifestName } from '@drydock/archive/format/archive-objects';
import { type OpenArchive, openChain } from '@drydock/archive/read/open-archive';
import { piecesOf, verifyPiece } from '@drydock/archive/read/verify-archive';
import type { StepContext } from '@drydock/workflow/definition/definition';
import { fail } from '@drydock/workflow/definition/step-error';
import { refOf, type WorkContext } from '../context/work';
import { withSpan } from '../providers/driver-span';
import { forEachAtOnce } from '../providers/for-each-at-once';
import { asMissingObject } from '../providers/offsite-errors';
import type { OffsiteReader, OffsiteStorage } from '../providers/offsite-storage';
import { type ArchiveAtHand, linksOf } from '../providers/site-host';
import { recordPresence } from './copy.store';
import type { StoredCopy } from './offsite.rules';
import { readsAtOnce } from './open-destination';
import { removeOrphans, spooledArchive, spoolFolder } from './spool';

export type StoredChain = ReadonlyArray<Pick<StoredCopy, 'id' | 'archive'>>;

/** The ids of the chain's copies, by the state of their manifests. */
interface ChainSeen {
  present: string[];
  missing: string[];
  /** The manifest is there, but differs from the one that was written. */
  altered: string[];
}

/**
 * Reads the manifests of a chain and compares them, for which no key is needed. Rejects if the storage refuses or
 * cannot be asked.
 */
export async function lookAtChain(reader: OffsiteReader, chain: StoredChain): Promise<ChainSeen> {
  const seen: ChainSeen = { present: [], missing: [], altered: [] };
  await forEachAtOnce(readsAtOnce, chain, async ({ id, archive }) => {
    const manifest = await reader
      .source(archive.objectKey)
      .read(manifestName)
      .catch((error: unknown) => {
        if (asMissingObject(error)) return null;
        throw error;
      });
    if (manifest === null) {
      seen.missing.push(id);
      return;
    }
    seen.present.push(id);
    if (createHash('sha256').update(manifest).digest('hex') !== archive.manifestSha256) seen.altered.push(id);
  });
  return seen;
}

type Step = StepContext<unknown, unknown>;

const folderOf = (context: WorkContext, { workflowId }: Step): string =>
  path.join(context.offsite.spoolDir, workflowId);

/** The chain for the later steps: read from our disk, and from the customer's storage if it is not there. */
export const spooledChain = (
  context: WorkContext,
  step: Step,
  storage: OffsiteStorage,
  chain: StoredChain,
  { isLastUse = false } = {},
): ArchiveAtHand[] =>
  chain.map(({ id, archive }) => ({
    source: spooledArchive(storage.source(archive.objectKey), spoolFolder(folderOf(context, step), id), isLastUse),
    archiveId: id,
    manifestMac: archive.manifestMac,
  }));

/**
 * Copies every object of a chain to our disk, and verifies each one as it arrives: an altered object ends the work at
 * once. The manifests come first, and must be on record and fit together before anything else is read. Permanent
 * failures `copy_chain_incomplete`, `copy_tampered`. @throws ArchiveError
 */
export async function fetchChain(
  context: WorkContext,
  step: Step,
  storage: OffsiteStorage,
  chain: StoredChain,
): Promise<void> {
  await removeOrphans(context.offsite.spoolDir, context.now().getTime());
  const seen = await lookAtChain(storage, chain);
  await context.database.transaction((tx) => recordPresence(tx, seen, context.now()));
  if (seen.missing.length > 0)
    throw fail('copy_chain_incomplete', { internal: `no manifest of ${seen.missing.join(', ')}` });
  if (seen.altered.length > 0)
    throw fail('copy_tampered', { internal: `another manifest of ${seen.altered.join(', ')}` });
  const links = spooledChain(context, step, storage, chain);
  const archives = await openChain(linksOf(refOf(step), links), context.archiveKey, completeLimits());
  const bytesTotal = chain.reduce((sum, { archive }) => sum + archive.sizeBytes, 0);
  let bytes = 0;
  await withSpan('offsite.fetch', { 'chain.archives': chain.length, 'chain.size_bytes': bytesTotal }, () =>
    forEachAtOnce(readsAtOnce, piecesOfChain(archives, step.signal), async ({ source, piece }) => {
      step.signal.throwIfAborted();
      await verifyPiece(source, piece);
      bytes += piece.size;
      step.progress(Math.min(1, bytes / bytesTotal));
    }),
  );
}

async function* piecesOfChain(archives: readonly OpenArchive[], signal: AbortSignal) {
  for (const archive of archives)
    for await (const piece of piecesOf(archive, signal)) yield { source: archive.source, piece };
}

/** Removes the fetched objects. None is no error. */
export const clearFetched = (context: WorkContext, step: Step): Promise<void> =>
  rm(folderOf(context, step), { recursive: true, force: true });
