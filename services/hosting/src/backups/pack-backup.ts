import type { Finding } from '@drydock/contracts/preflight';
import type { SitePlatform } from '@drydock/contracts/sites';
import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { attemptKey, backupPrefix } from '../providers/backup-storage';
import { hostOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import { findBackup, findLastRawBytes } from './backup.store';
import type { StoredArchive } from './backup.types';
import { definitely } from './definite-failure';
import { replaceSkipped } from './skipped.store';
import { findingsOfSkipped, sampleSize } from './skipped.view';

export interface BackupToPack {
  backupId: string;
  platform: SitePlatform;
  /** What is packed. */
  releaseId: string;
}

/** `findings`: the engine shows them as the workflow's findings. */
export type PackedBackup = StoredArchive & { findings: Finding[] };

type Step = StepContext<unknown, unknown>;

/** Packs a release into a folder of this attempt's own. Fails for good with `storage_full`; the archive counts only once it was verified. */
export async function packBackup(context: WorkContext, step: Step, { backupId, platform, releaseId }: BackupToPack): Promise<PackedBackup> {
  const { database, siteHosts, backupStorage } = context;
  const site = refOf(step);
  const backup = await findBackup(database.pool, { ...site, id: site.siteId }, backupId);
  if (backup === null) throw new Error(`backup ${backupId} has no row`);
  const storageKey = attemptKey(backupPrefix(backup), step.fence);
  const archive = {
    sink: backupStorage.sink(storageKey),
    archiveId: backupId,
    sequence: backup.sequence,
    createdAt: backup.createdAt,
    expectedRawBytes: await findLastRawBytes(database.pool, site.siteId),
  };
  const order = { ...orderOf(step), progress: step.progress };
  const packed = await definitely(hostOf(siteHosts, platform).pack(site, releaseId, archive, order));
  const { manifestMac, checksumSha256, sizeBytes, rawBytes, skipped } = packed;
  await database.transaction((tx) => replaceSkipped(tx, backupId, skipped));
  if (skipped.count > 0) step.log.warn({ skipped: skipped.count }, 'some paths cannot be in a backup');
  const findings = findingsOfSkipped({ count: skipped.count, sample: skipped.paths.slice(0, sampleSize) });
  return { storageKey, manifestMac, checksumSha256, sizeBytes, rawBytes, findings };
}

/** Takes back whatever any attempt at the backup has written. */
export async function discardPacked(context: WorkContext, step: Step, backupId: string): Promise<void> {
  await context.backupStorage.removeAll(backupPrefix({ ...refOf(step), id: backupId }));
}
