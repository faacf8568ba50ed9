import type { SitePlatform } from '@drydock/contracts/sites';
import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { fail } from '@drydock/workflow/step-error';
import { hostOf, type Probe } from '../providers/site-host';
import { serves } from '../sites/probe.rules';
import { refOf, type WorkContext } from '../sites/work';

type Step = StepContext<unknown, unknown>;

/** Asks the restored site while its customers still wait. Fails for good with `restore_probe_failed`: everything is then switched back. */
export async function assertServes(context: WorkContext, step: Step, platform: SitePlatform, failsOnPurpose: boolean): Promise<void> {
  const probe = await probeRestored(context, step, platform, failsOnPurpose);
  if (!serves(probe)) throw probeFailed(probe);
}

/**
 * Asks a site that there is nothing to switch back from: what its own code makes of a request need not be the rebuild's fault. Fails for good with
 * `restore_probe_failed` when its database takes no query.
 */
export async function assertRebuilt(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  failsOnPurpose: boolean,
): Promise<{ serves: boolean }> {
  const probe = await probeRestored(context, step, platform, failsOnPurpose);
  if (!probe.isSqlOk) throw probeFailed(probe);
  return { serves: serves(probe) };
}

function probeRestored(context: WorkContext, step: Step, platform: SitePlatform, failsOnPurpose: boolean): Promise<Probe> {
  if (failsOnPurpose) throw fail('restore_probe_failed', { internal: 'the sandbox site asked for it by its name' });
  return hostOf(context.siteHosts, platform).probe(refOf(step), orderOf(step));
}

const probeFailed = ({ httpStatus, isSqlOk, detail }: Probe): Error =>
  fail('restore_probe_failed', { internal: `HTTP ${httpStatus}, SQL ${isSqlOk}: ${detail}` });
