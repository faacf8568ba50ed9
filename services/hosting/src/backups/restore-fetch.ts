import type { SitePlatform } from '@drydock/contracts/sites';
import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import { hostOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import type { RestoreInput, RestorePlan } from './restore-recheck';
import { hasSpace, neededBytes } from './space.rules';

type Step = StepContext<unknown, unknown>;

/** The archive is in the storage, and the host has room for a whole release beside the live one. Nothing was changed when it fails. */
export async function assertFetchable(
  context: WorkContext,
  step: Step,
  { platform }: RestoreInput,
  { archive }: RestorePlan,
): Promise<void> {
  const [isStored] = await Promise.all([
    context.backupStorage.has(archive.storageKey),
    assertRoom(context, step, platform, archive.rawBytes),
  ]);
  if (!isStored) throw fail('backup_tampered', { internal: `nothing lies at ${archive.storageKey}` });
}

/** Fails for good with `storage_full` when the site's host has no room for a release of `rawBytes` beside the live one. */
export async function assertRoom(context: WorkContext, step: Step, platform: SitePlatform, rawBytes: number): Promise<void> {
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  const needed = neededBytes({ rawBytes });
  const freeBytes = hosted?.freeBytes ?? 0;
  if (!hasSpace(needed, freeBytes)) throw fail('storage_full', { internal: `${needed} bytes needed, ${freeBytes} free` });
}
