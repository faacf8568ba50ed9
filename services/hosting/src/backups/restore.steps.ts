import { setTimeout as wait } from 'node:timers/promises';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { fencedCall, type StepContext } from '@drydock/workflow/definition/definition';
import { fail } from '@drydock/workflow/definition/step-error';
import { type ArchiveToStage, hostOf, type Probe } from '../providers/site-host';
import { serves } from '../sites/probe.rules';
import { refOf, type WorkContext } from '../sites/work';
import { definitely } from './definite-failure';
import { findingsOfLost } from './skipped.view';
import { hasSpace, neededBytes } from './space.rules';

type Step = StepContext<unknown, unknown>;

/** Fails for good with `storage_full` when the site's host has no room for a release of `rawBytes` beside the live one. */
export async function assertRoom(context: WorkContext, step: Step, platform: SitePlatform, rawBytes: number): Promise<void> {
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  const needed = neededBytes({ rawBytes });
  const freeBytes = hosted?.freeBytes ?? 0;
  if (!hasSpace(needed, freeBytes)) throw fail('storage_full', { internal: `${needed} bytes needed, ${freeBytes} free` });
}

/** Each attempt stages a release of its own, so that one which lost its lease can never write into what another has made live. */
const releaseOf = ({ workflowId, fence }: Step): string => `${workflowId}-${fence}`;

/** An archive, or a chain of them, as a whole release beside the live one. Resolves with its id, and tells what the host did not restore whole. */
export async function stageRelease(
  context: WorkContext,
  step: Step,
  { platform, slowsOnPurpose }: { platform: SitePlatform; slowsOnPurpose: boolean },
  toStage: ArchiveToStage,
): Promise<{ releaseId: string; findings: Finding[] }> {
  await discardStaged(context, step, platform);
  if (slowsOnPurpose) await wait(context.slowMs, undefined, { signal: step.signal });
  const releaseId = releaseOf(step);
  const call = { ...fencedCall(step), progress: step.progress };
  const { lost } = await definitely(hostOf(context.siteHosts, platform).stage(refOf(step), releaseId, toStage, call));
  return { releaseId, findings: findingsOfLost(lost) };
}

/** Removes whatever this workflow has staged and not made live; nobody else's releases. */
export async function discardStaged(context: WorkContext, step: Step, platform: SitePlatform): Promise<void> {
  const host = hostOf(context.siteHosts, platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const staged = (hosted?.releases ?? []).filter((id) => id.startsWith(`${step.workflowId}-`) && id !== hosted?.currentRelease);
  for (const id of staged) await host.retire(refOf(step), id, fencedCall(step));
}

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
  return hostOf(context.siteHosts, platform).probe(refOf(step), fencedCall(step));
}

const probeFailed = ({ httpStatus, isSqlOk, detail }: Probe): Error =>
  fail('restore_probe_failed', { internal: `HTTP ${httpStatus}, SQL ${isSqlOk}: ${detail}` });
