import type { SiteBackup } from '@drydock/contracts/hosting/backups';
import { type OffsiteCopyKind, offsiteChainMax } from '@drydock/contracts/hosting/offsite';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { RecordedAnswer } from '../sites/probe.rules';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';
import type { Site } from '../sites/site.types';
/** The recorded facts about a completed copy. A restore refuses an archive that does not match them. */
export interface CopyArchive {
  objectKey: string;
  sizeBytes: number;
  /** Bytes of the archive's own content, unpacked; without those of its parents. */
  rawBytes: number;
  manifestSha256: string;
  manifestMac: string;
}

export interface Copy {
  id: string;
  destinationId: string;
  kind: OffsiteCopyKind;
  status: 'running' | 'completed' | 'failed';
  /** The copy that this incremental copy continues. Null for a full copy. */
  parentId: string | null;
  sequence: number;
  archive: CopyArchive | null;
  /** The part of `archive.rawBytes` in streams, such as the database. Null if it is not on record. */
  streamBytes: number | null;
  /** The skipped paths of the whole site, even if the copy is incremental. */
  skipped: SiteBackup['skipped'];
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  verifiedAt: Date | null;
  /** The time when Drydock found the copy missing in the storage. Null if the copy is not known to be missing. */
  missingAt: Date | null;
}

/** The facts that the rules about copies and restores of a site have in common. */
export interface OffsiteWorld {
  site: Pick<Site, 'status' | 'platform'>;
  unfinished: UnfinishedWorkflow | null;
  /** Null if no destination is configured. */
  destination: { id: string } | null;
  /** The copies at the destination, apart from the failed ones. */
  copies: readonly Copy[];
}

/** A copy whose archive is on record. */
export type StoredCopy = Copy & { archive: CopyArchive };

const isStored = (copy: Copy): copy is StoredCopy =>
  copy.status === 'completed' && copy.archive !== null && copy.missingAt === null;

/**
 * Copies by their ids. An answer makes one index for all copies that it shows. Without the index every shown copy would
 * cost a search through the whole list.
 */
export interface CopyIndex {
  byId: ReadonlyMap<string, Copy>;
  /** The ids of the copies whose whole chain is stored, in the order of the sequence numbers. */
  whole: ReadonlySet<string>;
}

export function indexCopies(copies: readonly Copy[]): CopyIndex {
  const whole = new Set<string>();
  // A copy has a higher sequence number than its parent, so the parent is decided first.
  for (const copy of [...copies].sort((a, b) => a.sequence - b.sequence)) {
    const isContinued = copy.parentId === null ? copy.kind === 'full' : whole.has(copy.parentId);
    if (isContinued && isStored(copy)) whole.add(copy.id);
  }
  return { byId: new Map(copies.map((copy) => [copy.id, copy])), whole };
}

/** The copy and all copies that it depends on, the full copy first. Ends early at a missing parent or a cycle. */
export function ancestryOf({ byId }: Pick<CopyIndex, 'byId'>, copy: Copy): Copy[] {
  const newestFirst = new Set([copy]);
  for (let at = copy; at.parentId !== null; ) {
    const parent = byId.get(at.parentId);
    if (parent === undefined || newestFirst.has(parent)) break;
    newestFirst.add(parent);
    at = parent;
  }
  return [...newestFirst].reverse();
}

/** The chain that a restore of `copy` reads, the full copy first. Null unless every copy of the chain is stored. */
export function restorableChain(
  copies: readonly Copy[],
  copy: Copy,
  index: CopyIndex = indexCopies(copies),
): StoredCopy[] | null {
  return index.whole.has(copy.id) ? ancestryOf(index, copy).filter(isStored) : null;
}

/** The copies as if none were missing, for a caller that then asks the storage which of them exist. */
export const assumePresent = (copies: readonly Copy[]): Copy[] => copies.map((copy) => ({ ...copy, missingAt: null }));

/** The chain that the next incremental copy continues: the newest complete one. Null if there is none. */
export function chainToContinue(copies: readonly Copy[]): StoredCopy[] | null {
  const index = indexCopies(copies);
  const newest = index.byId.get([...index.whole].at(-1) ?? '');
  return newest === undefined ? null : restorableChain(copies, newest, index);
}

/**
 * The copy that a request takes. A chain ends at `offsiteChainMax` copies: a restore reads every copy of its chain, so
 * each further copy makes all later restores slower and likelier to fail. At the end of a chain, or without one, a full
 * copy is taken instead of an incremental one.
 */
export function copyToTake(
  copies: readonly Copy[],
  asked: OffsiteCopyKind,
): { kind: OffsiteCopyKind; parentId: string | null } {
  const chain = asked === 'full' ? null : chainToContinue(copies);
  const parent = chain !== null && chain.length < offsiteChainMax ? chain.at(-1) : undefined;
  return parent === undefined ? { kind: 'full', parentId: null } : { kind: 'incremental', parentId: parent.id };
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
 * The first reason why the site may not be overwritten with `copy`; null if there is none. The checks come in this
 * order: whether a configured destination has the copy, unfinished work on the site, whether a destination is
 * configured, the state of the copy and its chain, the platform and the status of the site.
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

/**
 * The most bytes that a restore of a chain can write. `chain` begins with the full archive. Every archive holds its
 * streams whole, so a restore writes only the streams of the newest archive. Of a tree every archive but the first
 * holds only what has changed, so a restore may write the trees of all archives.
 */
export const writtenBytesOf = (chain: ReadonlyArray<{ rawBytes: number; streamBytes: number }>): number =>
  chain.reduce((sum, { rawBytes, streamBytes }, at) => sum + rawBytes - (at < chain.length - 1 ? streamBytes : 0), 0);

/**
 * {@link writtenBytesOf} by the records of the copies. A copy whose streams are not on record counts as if it had none,
 * which gives the highest result. Over ssh it counts as streams alone, because an archive of that platform holds
 * nothing else.
 */
export const rawBytesOf = (chain: readonly StoredCopy[], platform: Site['platform']): number =>
  writtenBytesOf(
    chain.map(({ archive: { rawBytes }, streamBytes }) => ({
      rawBytes,
      streamBytes: streamBytes ?? (platform === 'ssh' ? rawBytes : 0),
    })),
  );

/**
 * A fetch leaves this many bytes of the spool free, because a file system needs more than the bare size of the objects.
 */
const spoolReserveBytes = 64 * 2 ** 20;

/**
 * Whether the spool has room for the objects of a chain. `later` means that other content takes the room now, and
 * `never` that the spool is too small. `wholeBytes` is the size of all objects, `missingBytes` that of the objects
 * which are not in the spool yet. `promisedBytes` is what other fetches have yet to write.
 */
export function roomInSpool(
  { wholeBytes, missingBytes, promisedBytes }: Record<'wholeBytes' | 'missingBytes' | 'promisedBytes', number>,
  { freeBytes, totalBytes }: Record<'freeBytes' | 'totalBytes', number>,
): 'now' | 'later' | 'never' {
  if (wholeBytes > totalBytes - spoolReserveBytes) return 'never';
  return missingBytes + promisedBytes <= freeBytes - spoolReserveBytes ? 'now' : 'later';
}

/** The copy with this id, in upper or lower case. Null if there is none. */
export const findNamed = (copies: OffsiteWorld['copies'], copyId: string) =>
  copies.find(({ id }) => id === copyId.toLowerCase()) ?? null;
