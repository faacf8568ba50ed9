import { ArchiveError } from '@drydock/archive/archive-error';
import type { ArchiveSink } from '@drydock/archive/archive-objects';
import type { Finding } from '@drydock/contracts/preflight';
import { problems } from '@drydock/contracts/problems';
import type { SitePlatform } from '@drydock/contracts/sites';
import { timeOfId } from '@drydock/contracts/values';
import { TransferError } from '@drydock/pg-transfer/transfer-error';
import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { StepFailure } from '@drydock/workflow/step-error';
import { hostOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import { findLastRawBytes } from './backup.store';
import { definitely } from './definite-failure';
import { type PackedBackup, packBackup } from './pack-backup';
import { movingLimits } from './step-limits';

type Step = StepContext<{ safetyCopyId: string; platform: SitePlatform }, unknown>;

/** Instead of an archive: the replaced state could not be packed, and stays on the host as the release that it is. */
export interface KeptRelease {
  refused: { code: keyof typeof problems; detail: string };
  findings: Finding[];
}

const contentCode = 'site_content_refused';
const nowhere: ArchiveSink = { write: async () => undefined };

/**
 * Packs the live release as its safety copy will be, and keeps nothing of it. The site goes on serving; what it costs is one more reading of it. Taking the copy
 * itself before the switch would need a freeze as long as the copy takes, or would lose what visitors write meanwhile.
 * Fails for good with `site_content_refused` when something in the site cannot be packed: nothing has changed then.
 */
export async function provePackable(context: WorkContext, step: Step, releaseId: string): Promise<void> {
  const { safetyCopyId: archiveId, platform } = step.input;
  const site = refOf(step);
  const archive = {
    sink: nowhere,
    archiveId,
    sequence: 1,
    createdAt: timeOfId(archiveId),
    expectedRawBytes: await findLastRawBytes(context.database.pool, site.siteId),
  };
  const order = { ...orderOf(step), progress: step.progress };
  await definitely(hostOf(context.siteHosts, platform).pack(site, releaseId, archive, order));
}

/**
 * The replaced release as a backup. Its content was proven to pack moments ago; where it does not all the same, the release is kept instead and the restore ends:
 * nobody can mend what is no longer served, and the site need not wait for it.
 */
export async function packSafetyCopy(context: WorkContext, step: Step, releaseId: string): Promise<PackedBackup | KeptRelease> {
  const { safetyCopyId: backupId, platform } = step.input;
  try {
    return await packBackup(context, step, { backupId, platform, releaseId });
  } catch (error) {
    const refused = refusedContent(error, step);
    if (refused === null) throw error;
    step.log.error({ release_id: releaseId, internal: String(error), alarm: true }, 'a replaced release cannot be packed and is kept');
    const detail = `What was replaced cannot be packed: ${refused.detail}. Its release is kept until the next restore.`;
    return { refused, findings: [{ level: 'WARNING', code: 'safety_copy_not_taken', detail }] };
  }
}

function refusedContent(error: unknown, step: Step): KeptRelease['refused'] | null {
  if (error instanceof StepFailure) {
    const { code, detail = problems[contentCode].title } = error.problem;
    return code === contentCode ? { code, detail } : null;
  }
  // What is read wrongly each time is as good as refused.
  const isAboutContent = error instanceof TransferError || (error instanceof ArchiveError && error.reason === 'source_unreadable');
  if (!isAboutContent || step.signal.aborted || step.attempt < movingLimits.attemptsMax) return null;
  return { code: contentCode, detail: problems[contentCode].title };
}

/** Removes every release that is neither served nor kept: also one that an earlier restore has kept. */
export async function retireReplaced(context: WorkContext, step: Step, keptRelease: string | null): Promise<void> {
  const host = hostOf(context.siteHosts, step.input.platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const replaced = (hosted?.releases ?? []).filter((id) => id !== hosted?.currentRelease && id !== keptRelease);
  for (const id of replaced) await definitely(host.retire(refOf(step), id, orderOf(step)));
}
