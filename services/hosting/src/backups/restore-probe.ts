import type { SitePlatform } from '@drydock/contracts/sites';
import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { fail } from '@drydock/workflow/step-error';
import { hostOf } from '../providers/site-host';
import { serves } from '../sites/probe.rules';
import { refOf, type WorkContext } from '../sites/work';

/** Asks the restored site while its customers still wait. Fails for good with `restore_probe_failed`: everything is then switched back. */
export async function assertServes(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  platform: SitePlatform,
  failsOnPurpose: boolean,
): Promise<void> {
  if (failsOnPurpose) throw fail('restore_probe_failed', { internal: 'the sandbox site asked for it by its name' });
  const probe = await hostOf(context.siteHosts, platform).probe(refOf(step), orderOf(step));
  if (!serves(probe)) throw fail('restore_probe_failed', { internal: `HTTP ${probe.httpStatus}, SQL ${probe.isSqlOk}: ${probe.detail}` });
}
