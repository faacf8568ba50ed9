import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { Destination } from '../providers/offsite-place.types';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';
import type { Site } from '../sites/site.types';
import type { Copy, CopyArchive } from './offsite.types';

/** The facts that every rule about a site's copies needs. */
export interface OffsiteWorld {
  site: Pick<Site, 'status' | 'platform'>;
  unfinished: UnfinishedWorkflow | null;
  destination: Destination | null;
  /** All copies at the destination. */
  copies: readonly Copy[];
}

/** A copy that can be read. */
export type StoredCopy = Copy & { archive: CopyArchive };

/**
 * The copy and every copy that it depends on, the full copy first. The chain ends early at a missing parent or a cycle.
 */
export function ancestryOf(copies: readonly Copy[], copy: Copy): Copy[] {
  const chain = [copy];
  for (let at = copy; at.parentId !== null; ) {
    const parent = copies.find(({ id }) => id === at.parentId);
    if (parent === undefined || chain.includes(parent)) break;
    chain.unshift(parent);
    at = parent;
  }
  return chain;
}

const isStored = (copy: Copy): copy is StoredCopy =>
  copy.status === 'completed' && copy.archive !== null && copy.missingAt === null;

/** The chain that a restore of `copy` reads, the full copy first. Null if a copy of the chain is missing. */
export function restorableChain(copies: readonly Copy[], copy: Copy): StoredCopy[] | null {
  const chain = ancestryOf(copies, copy);
  return chain[0]?.kind === 'full' && chain.every(isStored) ? chain : null;
}

/** Returns the copies without the mark that they are missing, for a caller that checks the storage next. */
export const presumably = (copies: readonly Copy[]): Copy[] => copies.map((copy) => ({ ...copy, missingAt: null }));

/**
 * The chain that the next incremental copy builds on: the chain of the newest copy whose chain is complete. Null if
 * there is no such copy.
 */
export function chainToContinue(copies: readonly Copy[]): StoredCopy[] | null {
  const newestFirst = [...copies].sort((a, b) => b.sequence - a.sequence);
  for (const copy of newestFirst) {
    const chain = isStored(copy) ? restorableChain(copies, copy) : null;
    if (chain !== null) return chain;
  }
  return null;
}

export function refuseCopy(world: OffsiteWorld, kind: Copy['kind']): Refusal | null {
  const isAtWork = refusalByWorkflow(world.unfinished);
  if (isAtWork !== null) return isAtWork;
  if (world.destination === null) return { code: 'offsite_not_configured' };
  const refusal = refuseByPlatform(world);
  if (refusal !== null) return refusal;
  return kind === 'incremental' && chainToContinue(world.copies) === null ? { code: 'copy_chain_incomplete' } : null;
}

/**
 * Whether the site may be overwritten with `copy`. The first reason counts, in this order: the copy or the storage does
 * not exist, a workflow works on the site, the state of the copy, the platform and status of the site.
 */
export function refuseRestore(world: OffsiteWorld, copy: Copy | null): Refusal | null {
  const isUnknown = world.destination !== null && copy === null;
  const isAtWork = isUnknown ? null : refusalByWorkflow(world.unfinished);
  return isAtWork ?? refuseCopyPoint(world, copy) ?? refuseByPlatform(world);
}

function refuseCopyPoint({ destination, copies }: OffsiteWorld, copy: Copy | null): Refusal | null {
  if (destination === null) return { code: 'offsite_not_configured' };
  if (copy === null || copy.status !== 'completed') return { code: 'copy_not_found' };
  return restorableChain(copies, copy) === null ? { code: 'copy_chain_incomplete' } : null;
}

function refuseByPlatform({ site }: OffsiteWorld): Refusal | null {
  if (unsupportedReasonOf(site.platform) !== '') return { code: 'platform_unsupported' };
  return isReady(site.status) ? null : { code: 'site_not_ready' };
}

/** The most bytes that a restore can write, which is the sum over the chain's archives. */
export const rawBytesOf = (chain: readonly StoredCopy[]): number =>
  chain.reduce((sum, { archive }) => sum + archive.rawBytes, 0);

/** The copy with this id. Ids are UUIDs, so any other text names no copy. */
export const findNamed = (copies: OffsiteWorld['copies'], copyId: string) =>
  copies.find(({ id }) => id === copyId.toLowerCase()) ?? null;
