import { ArchiveError, type ArchiveSource, readFacts, verifyArchive } from '@drydock/archive';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { fail, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import { attemptKey, backupPrefix } from '../providers/backup-storage';
import { withSpan } from '../providers/driver-span';
import { hostOf } from '../providers/site-host';
import { definitely } from '../sites/definite-failure';
import { type KeptBackup, lockEnd, type StoredArchive } from './backup.rules';
import { findBackup, findLastRawBytes, replaceSkipped } from './backup.store';
import { findingsOfSkipped, summarise } from './skipped.view';

/**
 * Limits of steps that move every byte of a site. The largest archive, 4 TiB, takes 6.1 hours at 200 MB/s. There are
 * more attempts than by default, because giving up would waste hours of work.
 */
export const movingLimits = { timeoutSeconds: 7 * 3_600, attemptsMax: 8 };

/** Limits of steps during which a site's visitors wait. */
export const frozenLimits = { timeoutSeconds: 20, attemptsMax: 5 };

/**
 * How long a freeze before a switch lasts. The freeze ends by itself, so that a site does not stay frozen when its
 * worker dies. Five seconds are far more than the pause between two steps, and less than a browser waits.
 */
export const freezeTtlMs = 5_000;

export interface BackupToPack {
  backupId: string;
  platform: SitePlatform;
  releaseId: string;
}

/** The workflow engine shows `findings` as the workflow's findings. */
export type PackedBackup = StoredArchive & { findings: Finding[] };

type Step = StepContext<unknown, unknown>;

/**
 * Packs a release into a folder that belongs to this attempt alone. No restore uses the archive before a later step has
 * verified it. Permanent failures `site_content_refused`, `storage_full`.
 */
export async function packBackup(
  context: WorkContext,
  step: Step,
  { backupId, platform, releaseId }: BackupToPack,
): Promise<PackedBackup> {
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
  const call = { ...fencedCall(step), progress: step.progress };
  const packed = await definitely(hostOf(siteHosts, platform).pack(site, releaseId, archive, call));
  const { manifestMac, checksumSha256, sizeBytes, rawBytes, skipped } = packed;
  await database.transaction((tx) => replaceSkipped(tx, backupId, skipped));
  if (skipped.count > 0) step.log.warn({ skipped: skipped.count }, 'some paths cannot be in a backup');
  const findings = findingsOfSkipped(summarise(skipped));
  return { storageKey, manifestMac, checksumSha256, sizeBytes, rawBytes, findings };
}

/**
 * Finds the newest complete archive of a backup in the storage. Null if there is none. Checks the MAC of the manifest,
 * but does not read the content. The storage is asked because the backup's row does not name the archive if Drydock's
 * database was put back to an earlier moment.
 */
export async function findWritten(context: WorkContext, step: Step, backupId: string): Promise<StoredArchive | null> {
  const { backupStorage, archiveKey } = context;
  const { siteId, orgId, mode } = refOf(step);
  const fenceOf = (key: string): bigint => BigInt(key.slice(key.lastIndexOf('/') + 1));
  const finished = await backupStorage.listFinished(backupPrefix({ mode, orgId, siteId, id: backupId }));
  for (const storageKey of finished.sort((one, other) => (fenceOf(one) < fenceOf(other) ? 1 : -1))) {
    try {
      const { manifestSha256: checksumSha256, ...facts } = await readFacts(
        backupStorage.source(storageKey),
        archiveKey,
        {
          archiveId: backupId,
          siteId,
          orgId,
        },
      );
      return { storageKey, checksumSha256, ...facts };
    } catch (error) {
      if (!(error instanceof ArchiveError)) throw error;
      step.log.warn({ storage_key: storageKey, internal: error.message }, 'what lies there is not this backup');
    }
  }
  return null;
}

/**
 * Packs a release. The host lacks the release if an earlier run has gone further and the record of that run was lost,
 * because Drydock's database was put back from a backup. Then the result is the archive that the earlier run has
 * written. Permanent failure `superseded` if there is no such archive.
 */
export async function packOrFind(context: WorkContext, step: Step, backup: BackupToPack): Promise<PackedBackup> {
  const hosted = await hostOf(context.siteHosts, backup.platform).describe(refOf(step), step.signal);
  if (hosted?.releases.includes(backup.releaseId)) return packBackup(context, step, backup);
  const written = await findWritten(context, step, backup.backupId);
  if (written === null)
    throw fail('superseded', { internal: `there is no release ${backup.releaseId}, and no backup of it` });
  return { ...written, findings: [] };
}

export async function discardPacked(context: WorkContext, step: Step, backupId: string): Promise<void> {
  await context.backupStorage.removeAll(backupPrefix({ ...refOf(step), id: backupId }));
}

/**
 * Reads the whole archive back. Checks every MAC, every index entry, and that the manifest is the recorded one. The
 * permanent failures are those of `archiveFailure` in packages/workflow.
 */
export async function verifyStored(
  context: WorkContext,
  step: Step,
  backupId: string,
  archive: StoredArchive,
): Promise<void> {
  const { siteId, orgId } = refOf(step);
  const source = countReads(context.backupStorage.source(archive.storageKey), (bytes) =>
    step.progress(Math.min(1, bytes / archive.sizeBytes)),
  );
  const expected = { archiveId: backupId, siteId, orgId, manifestMac: archive.manifestMac };
  await withSpan('backup.verify', { 'backup.size_bytes': archive.sizeBytes }, () =>
    definitely(verifyArchive(source, context.archiveKey, expected, { signal: step.signal })),
  );
}

/**
 * Verifies an archive that was just written, and removes the folders of earlier attempts. Then locks the archive if the
 * storage has locks. The lock comes last, because a locked archive cannot be removed after a failure.
 */
export async function verifyWritten(
  context: WorkContext,
  step: Step,
  backupId: string,
  archive: StoredArchive,
): Promise<KeptBackup> {
  const { backupStorage, now } = context;
  await verifyStored(context, step, backupId, archive);
  await backupStorage.removeAll(backupPrefix({ ...refOf(step), id: backupId }), archive.storageKey);
  const completedAt = now();
  const lockedUntil = await backupStorage.lock(archive.storageKey, lockEnd(completedAt));
  return {
    completedAt: completedAt.toISOString(),
    lockedUntil: lockedUntil?.toISOString() ?? null,
    location: backupStorage.locationIn(step.mode),
  };
}

function countReads(source: ArchiveSource, onRead: (bytes: number) => void): ArchiveSource {
  let bytes = 0;
  return {
    read: async (name) => {
      const object = await source.read(name);
      bytes += object.length;
      onRead(bytes);
      return object;
    },
  };
}
