import type { ArchiveSource } from '@drydock/archive/archive-objects';
import { verifyArchive } from '@drydock/archive/verify-archive';
import type { StepContext } from '@drydock/workflow/definition';
import { backupPrefix } from '../providers/backup-storage';
import { withSpan } from '../providers/driver-span';
import { refOf, type WorkContext } from '../sites/work';
import { lockEnd } from './backup.rules';
import type { KeptBackup, StoredArchive } from './backup.types';
import { definitely } from './definite-failure';

type Step = StepContext<unknown, unknown>;

/**
 * Reads the whole archive back: every MAC, every index entry, and that its manifest is the one on record.
 * Fails for good with `backup_tampered`.
 */
export async function verifyStored(context: WorkContext, step: Step, backupId: string, archive: StoredArchive): Promise<void> {
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
 * The same for an archive that was just written, which then goes under lock, where the storage has one; the folders of earlier attempts at
 * it go. Locked last: whatever fails before it can still be taken back.
 */
export async function verifyWritten(context: WorkContext, step: Step, backupId: string, archive: StoredArchive): Promise<KeptBackup> {
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
