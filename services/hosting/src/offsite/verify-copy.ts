import type { ArchiveSource } from '@drydock/archive/archive-objects';
import { verifyArchive } from '@drydock/archive/verify-archive';
import type { StepContext } from '@drydock/workflow/definition';
import { withSpan } from '../providers/driver-span';
import { copyFolder } from '../providers/offsite-storage';
import { readAhead } from '../providers/read-ahead';
import { refOf, type WorkContext } from '../sites/work';
import type { CopyInput, ParentChain } from './copy-offsite.workflow';
import type { CopyArchive } from './offsite.types';
import { readsAtOnce } from './offsite-limits';
import { withStorage } from './open-destination';

/** Reads a copy back from the customer's storage: every MAC, every entry. Then what earlier attempts left there goes. */
export function verifyCopy(
  context: WorkContext,
  step: StepContext<CopyInput, unknown>,
  archive: CopyArchive,
  parents: ParentChain,
): Promise<void> {
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
    await withSpan('offsite.verify', { 'copy.size_bytes': archive.sizeBytes }, () =>
      verifyArchive(source, context.archiveKey, expected, { signal: step.signal }),
    );
    await storage.removeAll(copyFolder(siteId, step.input.copyId), archive.objectKey);
  });
}
