import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { attemptKey } from '../providers/backup-storage';
import { copyFolder, OffsiteError } from '../providers/offsite-storage';
import { type ArchiveAtHand, hostOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import { findCopy } from './copy.store';
import type { CopyInput, ParentChain } from './copy-offsite.workflow';
import type { CopyArchive } from './offsite.types';
import { withStorage } from './open-destination';

type Step = StepContext<CopyInput, unknown>;

/** Packs straight into the customer's bucket, into a folder of this attempt's own; nothing of it touches our disk. */
export function packCopy(
  context: WorkContext,
  step: Step,
  { releaseId, parents }: { releaseId: string; parents: ParentChain },
): Promise<CopyArchive> {
  return withStorage(context, step, async (storage) => {
    const { copyId, platform } = step.input;
    const site = refOf(step);
    const copy = await findCopy(context.database.pool, site.siteId, copyId);
    if (copy === null) throw new Error(`copy ${copyId} has no row`);
    const objectKey = attemptKey(copyFolder(site.siteId, copyId), step.fence);
    const chain = parents.map(
      ({ id, archive }): ArchiveAtHand => ({ source: storage.source(archive.objectKey), archiveId: id, manifestMac: archive.manifestMac }),
    );
    const archive = {
      sink: storage.sink(objectKey),
      archiveId: copyId,
      sequence: copy.sequence,
      createdAt: copy.createdAt,
      expectedRawBytes: parents[0]?.archive.rawBytes ?? null,
      ...(chain.length === 0 ? {} : { parents: chain }),
    };
    const packed = await hostOf(context.siteHosts, platform).pack(site, releaseId, archive, { ...orderOf(step), progress: step.progress });
    const { manifestMac, checksumSha256: manifestSha256, sizeBytes, rawBytes, skipped } = packed;
    if (skipped.count > 0) step.log.warn({ skipped: skipped.count }, 'some paths cannot be in a copy');
    return { objectKey, manifestMac, manifestSha256, sizeBytes, rawBytes };
  });
}

/** Takes back what any attempt has written. A storage that lets us in no longer keeps it: it is the customer's, and is no archive. */
export async function discardCopy(context: WorkContext, step: Step): Promise<void> {
  const { siteId } = refOf(step);
  try {
    await withStorage(context, step, (storage) => storage.removeAll(copyFolder(siteId, step.input.copyId)));
  } catch (error) {
    if (!(error instanceof OffsiteError) && step.attempt < discardAttempts) throw error;
    step.log.warn({ err: error }, 'a copy that came to nothing could not be removed');
  }
}

/** A storage that is gone for longer keeps what it has: no reason to hold the site for it. */
const discardAttempts = 3;
