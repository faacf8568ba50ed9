import { ArchiveError } from '@drydock/archive/format/archive-error';
import type { Mode } from '@drydock/contracts/platform/values';
import { fencedCall, type StepContext } from '@drydock/workflow/definition/definition';
import { hasSpace, neededBytes } from '../backups/space.rules';
import { hostOf, SiteHostError, type SiteRef } from '../providers/site-host';
import { platformOrgId } from '../retention/platform-work';
import type { WorkContext } from '../sites/work';
import type { DrillChoice } from './drill-choice.store';

type Step = StepContext<unknown, unknown>;

/** The platform's own site that is made for one drill, with ids derived from the drill's. */
export const drillSiteOf = ({ workflowId, mode }: { workflowId: string; mode: Mode }): SiteRef => ({
  siteId: workflowId,
  orgId: platformOrgId,
  mode,
});

/**
 * Restores like a customer's restore: stages, then switches. A permanent refusal is the drill's outcome; any other
 * error is tried again.
 */
export async function restoreOnDrillSite(
  context: WorkContext,
  step: Step,
  { backupId, origin, archive, database }: DrillChoice,
): Promise<'' | 'restore_failed'> {
  const host = hostOf(context.siteHosts, 'local');
  const site = drillSiteOf(step);
  const call = fencedCall(step);
  const source = context.backupStorage.source(archive.storageKey);
  const toStage = { source, archiveId: backupId, manifestMac: archive.manifestMac, origin };
  try {
    const wanted = { domain: `drill-${site.siteId}.invalid`, database };
    const { currentRelease: from, freeBytes } = await host.create(site, wanted, call);
    const to = `drill-${step.fence}`;
    if (from === to) return '';
    const needed = neededBytes(archive);
    // The disk belongs to the customers, so a drill must not use up the last of it.
    if (!hasSpace(needed, freeBytes)) return refused(step, backupId, `${needed} bytes needed, ${freeBytes} free`);
    await host.stage(site, to, toStage, { ...call, progress: step.progress });
    await host.switchRelease(site, { from, to }, call);
    await host.thaw(site, call);
    return '';
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return refused(step, backupId, String(error));
  }
}

function refused(step: Step, backupId: string, internal: string): 'restore_failed' {
  step.log.error({ backup_id: backupId, internal, alarm: 'restore_drill_failed' }, 'a restore drill was refused');
  return 'restore_failed';
}

/** A lost claim says nothing about the backup. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ArchiveError
    ? error.reason !== 'source_unreadable'
    : error instanceof SiteHostError && error.refusal !== 'stale_fence';

/** Also when it was never made. */
export async function clearDrillSite(context: WorkContext, step: Step): Promise<void> {
  const site = drillSiteOf(step);
  await context.siteHosts.local?.destroy(site, fencedCall(step));
}

/** Null if the archive cannot be read as it was written; throws any other error, which may be transient. */
export function asUnavailable(error: unknown): null {
  if (error instanceof ArchiveError && error.reason !== 'source_unreadable') return null;
  throw error;
}
