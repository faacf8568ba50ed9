import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import { hostOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import type { RestoreInput, RestorePlan } from './restore-recheck';
import { hasSpace, neededBytes } from './space.rules';

/** The archive is in the storage, and the host has room for a whole release beside the live one. Nothing was changed when it fails. */
export async function assertFetchable(
  context: WorkContext,
  step: StepContext<RestoreInput, unknown>,
  { platform }: RestoreInput,
  { archive }: RestorePlan,
): Promise<void> {
  const [isStored, hosted] = await Promise.all([
    context.backupStorage.has(archive.storageKey),
    hostOf(context.siteHosts, platform).describe(refOf(step), step.signal),
  ]);
  if (!isStored) throw fail('backup_tampered', { internal: `nothing lies at ${archive.storageKey}` });
  const needed = neededBytes(archive);
  const freeBytes = hosted?.freeBytes ?? 0;
  if (!hasSpace(needed, freeBytes)) throw fail('storage_full', { internal: `${needed} bytes needed, ${freeBytes} free` });
}
