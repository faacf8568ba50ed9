import { type ArchiveSource, verifyArchive } from '@drydock/archive';
import { offsiteCopyKindSchema } from '@drydock/contracts/hosting/offsite';
import { sitePlatformSchema } from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { archiveErrorIn, fail, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { findingsOfSkipped, type SkippedSummary, summarise } from '../backups/skipped.view';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import { attemptKey } from '../providers/backup-storage';
import { withSpan } from '../providers/driver-span';
import { copyFolder, OffsiteError } from '../providers/offsite-storage';
import { readAhead } from '../providers/read-ahead';
import { type ArchiveAtHand, hostOf } from '../providers/site-host';
import { askForRecord } from '../sites/ask-site';
import { assertStillAllowed } from '../sites/definite-failure';
import { noAnswer, type RecordedAnswer } from '../sites/probe.rules';
import { findSite } from '../sites/site.store';
import { streamBytesOf } from './fetch-chain';
import { type CopyArchive, refuseCopy, restorableChain, type StoredCopy } from './offsite.rules';
import { findCopy, listCopies, markCopied, markCopyFailed, recordOutcome } from './offsite.store';
import { offsiteLimits, onStorage, readsAtOnce, requireDestination, withStorage } from './open-destination';

const input = z.strictObject({
  copyId: z.uuid(),
  destinationId: z.uuid(),
  kind: offsiteCopyKindSchema,
  platform: sitePlatformSchema,
});

type CopyInput = z.infer<typeof input>;

/**
 * The copies that an incremental copy builds on, the full copy first; none for a full copy. The chain is part of a
 * checkpoint, so it must be plain JSON.
 */
type ParentChain = ReadonlyArray<Pick<StoredCopy, 'id' | 'archive'>>;

/** The workflow engine shows `findings` as the workflow's findings. */
interface PackedCopy {
  archive: CopyArchive;
  skipped: SkippedSummary;
  findings: Finding[];
}

/**
 * Packs the files and the database of the current release into the customer's storage, then reads the copy back and
 * verifies it. An incremental copy holds only the differences from its parent.
 */
export const copyOffsiteWorkflow = defineWorkflow({ kind: 'copy_offsite', input })
  .step('recheck', { weight: 0.2, run: (step, context) => recheckCopy(context, step) })
  .step('pack', {
    ...offsiteLimits,
    weight: 8,
    run: (step, context) =>
      onStorage(step, offsiteLimits.attemptsMax, () => packCopy(context, step, step.outputs.recheck)),
    undo: (step, context) => discardCopy(context, step),
  })
  .step('verify', {
    ...offsiteLimits,
    weight: 3,
    run: async (step, context) => {
      const { recheck, pack } = step.outputs;
      const streamBytes = await onStorage(step, offsiteLimits.attemptsMax, () =>
        verifyCopy(context, step, pack.archive, recheck.parents),
      );
      return { at: context.now().toISOString(), streamBytes };
    },
    commit: async (tx, step, { at, streamBytes }) => {
      const { archive, skipped } = step.outputs.pack;
      const { answer = noAnswer } = step.outputs.recheck;
      await markCopied(tx, step.input.copyId, archive, { streamBytes, skipped, answer }, new Date(at));
      await recordOutcome(tx, step.input.destinationId, '');
    },
  })
  .onEnd({
    failed: async (tx, run, { code }) => {
      await markCopyFailed(tx, run.input.copyId, code);
      await recordOutcome(tx, run.input.destinationId, code);
    },
  })
  .build();

/** Checkpoints of earlier versions lack `answer`. */
interface CopyPlan {
  releaseId: string;
  parents: ParentChain;
  answer?: RecordedAnswer;
}

/** Applies the rule of the request again. Keeps the parent that the request has chosen. */
async function recheckCopy(context: WorkContext, step: StepContext<CopyInput, unknown>): Promise<CopyPlan> {
  const { copyId, kind, platform } = step.input;
  const { pool } = context.database;
  const site = await findSite(pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const destination = await requireDestination(context, step);
  const copies = await listCopies(pool, destination);
  assertStillAllowed(refuseCopy({ site, unfinished: null, destination, copies }, kind));
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), fencedCall(step).signal);
  if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
  const answer = await askForRecord(context, step, platform);
  const own = copies.find(({ id }) => id === copyId);
  const parent = copies.find(({ id }) => id === own?.parentId);
  if (kind === 'full' || parent === undefined) return { releaseId: hosted.currentRelease, parents: [], answer };
  const chain = restorableChain(copies, parent);
  if (chain === null) throw fail('copy_chain_incomplete');
  return { releaseId: hosted.currentRelease, parents: chain.map(({ id, archive }) => ({ id, archive })), answer };
}

type Step = StepContext<CopyInput, unknown>;

/**
 * Packs into a folder of the customer's bucket that belongs to this attempt alone. Nothing is written to the worker's
 * disk.
 */
function packCopy(
  context: WorkContext,
  step: Step,
  { releaseId, parents }: { releaseId: string; parents: ParentChain },
): Promise<PackedCopy> {
  return withStorage(context, step, async (storage) => {
    const { copyId, platform } = step.input;
    const site = refOf(step);
    const copy = await findCopy(context.database.pool, site.siteId, copyId);
    if (copy === null) throw new Error(`copy ${copyId} has no row`);
    const objectKey = attemptKey(copyFolder(site.siteId, copyId), step.fence);
    const chain = parents.map(
      ({ id, archive }): ArchiveAtHand => ({
        source: storage.source(archive.objectKey),
        archiveId: id,
        manifestMac: archive.manifestMac,
      }),
    );
    const archive = {
      sink: storage.sink(objectKey),
      archiveId: copyId,
      sequence: copy.sequence,
      createdAt: copy.createdAt,
      expectedRawBytes: parents[0]?.archive.rawBytes ?? null,
      ...(chain.length === 0 ? {} : { parents: chain }),
    };
    const call = { ...fencedCall(step), progress: step.progress };
    const packing = hostOf(context.siteHosts, platform).pack(site, releaseId, archive, call);
    const packed = await (chain.length === 0 ? packing : asIncrement(packing));
    const { manifestMac, checksumSha256: manifestSha256, sizeBytes, rawBytes } = packed;
    const skipped = summarise(packed.skipped);
    if (skipped.count > 0) step.log.warn({ skipped: skipped.count }, 'some paths cannot be in a copy');
    const stored = { objectKey, manifestMac, manifestSha256, sizeBytes, rawBytes };
    return { archive: stored, skipped, findings: findingsOfSkipped(skipped) };
  });
}

/**
 * Rejects with `copy_too_large` if the packing ends at a limit of archives. A full copy may still be within the limit:
 * an increment counts deleted paths too, and an agent of the previous release also counts the content of the whole
 * chain.
 */
export function asIncrement<T>(packing: Promise<T>): Promise<T> {
  return packing.catch((error: unknown) => {
    const refused = archiveErrorIn(error);
    if (refused?.reason !== 'limit_exceeded') throw error;
    const limit = refused.message.replace('limit_exceeded: ', '');
    const detail = `${limit}: take a full copy, which begins a new chain`;
    throw fail('copy_too_large', { detail, internal: String(error), cause: error });
  });
}

/**
 * Removes the objects of all attempts at the copy. If the customer's storage refuses, or if all `discardAttempts` fail,
 * the objects stay. Nothing reads them, because the copy is marked as failed.
 */
async function discardCopy(context: WorkContext, step: Step): Promise<void> {
  const { siteId } = refOf(step);
  try {
    await withStorage(context, step, (storage) => storage.removeAll(copyFolder(siteId, step.input.copyId)));
  } catch (error) {
    if (!(error instanceof OffsiteError) && step.attempt < discardAttempts) throw error;
    step.log.warn({ err: error }, 'a copy that came to nothing could not be removed');
  }
}

/** The most attempts to remove a failed copy. The site is locked until the last of them has ended. */
const discardAttempts = 3;

/**
 * Reads a copy back and checks every MAC and every entry. Then removes the leftovers of earlier attempts. Resolves with
 * the unpacked size of the copy's streams, in bytes.
 */
function verifyCopy(
  context: WorkContext,
  step: StepContext<CopyInput, unknown>,
  archive: CopyArchive,
  parents: ParentChain,
): Promise<number> {
  return withStorage(context, step, async (storage) => {
    const site = refOf(step);
    const stored = storage.source(archive.objectKey);
    const parentMac = parents.at(-1)?.archive.manifestMac ?? null;
    const { siteId, orgId } = site;
    const expected = { archiveId: step.input.copyId, siteId, orgId, manifestMac: archive.manifestMac, parentMac };
    const ahead = readAhead(stored, readsAtOnce);
    let bytes = 0;
    const source: ArchiveSource = {
      read: async (name) => {
        const object = await ahead.read(name);
        bytes += object.length;
        step.progress(Math.min(1, bytes / archive.sizeBytes));
        return object;
      },
    };
    const manifest = await withSpan('offsite.verify', { 'copy.size_bytes': archive.sizeBytes }, () =>
      verifyArchive(source, context.archiveKey, expected, { signal: step.signal }),
    );
    await storage.removeAll(copyFolder(siteId, step.input.copyId), archive.objectKey);
    return streamBytesOf(manifest);
  });
}
