import { fencedCall, type StepContext } from '@drydock/workflow/definition/definition';
import { hostOf } from '../providers/site-host';
import { failedOf, type RecordedAnswer } from '../sites/probe.rules';
import type { WorkContext } from '../sites/work';
import { drillSiteOf } from './drill-site';
import type { Sentinels } from './sentinel.rules';

/** Asks the restored site for everything that was recorded with its backup; it may not answer worse than then. */
export async function compareRestored(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  { files, tables }: Sentinels,
  answer: RecordedAnswer,
): Promise<'' | 'probe_failed' | 'content_mismatch' | 'no_drill_site'> {
  const { siteHosts, drillProbe } = context;
  if (drillProbe === null) return 'no_drill_site';
  const site = drillSiteOf(step);
  const probe = await hostOf(siteHosts, 'local').probe(site, fencedCall(step));
  if (failedOf(probe, answer).length > 0) return 'probe_failed';
  for (const { path, sha256 } of files) {
    if ((await drillProbe.hashServed(site, path, step.signal)) !== sha256) return differs(step, { path });
  }
  for (const { rows, ...table } of tables) {
    if ((await drillProbe.countRows(site, table, fencedCall(step))) !== rows)
      return differs(step, { table: table.name });
  }
  return '';
}

function differs(step: StepContext<unknown, unknown>, what: object): 'content_mismatch' {
  step.log.error({ ...what, alarm: 'restore_drill_failed' }, 'a restored site is not what was backed up');
  return 'content_mismatch';
}
