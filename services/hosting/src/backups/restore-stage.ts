import { setTimeout as wait } from 'node:timers/promises';
import type { SitePlatform } from '@drydock/contracts/sites';
import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { type ArchiveToStage, hostOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import { definitely } from './definite-failure';

type Step = StepContext<unknown, unknown>;

/** Each attempt stages a release of its own, so that one which lost its lease can never write into what another has made live. */
const releaseOf = ({ workflowId, fence }: Step): string => `${workflowId}-${fence}`;

/** An archive, or a chain of them, as a whole release beside the live one. Resolves with its id. */
export async function stageRelease(
  context: WorkContext,
  step: Step,
  { platform, slowsOnPurpose }: { platform: SitePlatform; slowsOnPurpose: boolean },
  toStage: ArchiveToStage,
): Promise<{ releaseId: string }> {
  await discardStaged(context, step, platform);
  if (slowsOnPurpose) await wait(context.slowMs, undefined, { signal: step.signal });
  const releaseId = releaseOf(step);
  const order = { ...orderOf(step), progress: step.progress };
  await definitely(hostOf(context.siteHosts, platform).stage(refOf(step), releaseId, toStage, order));
  return { releaseId };
}

/** Removes whatever this workflow has staged and not made live; nobody else's releases. */
export async function discardStaged(context: WorkContext, step: Step, platform: SitePlatform): Promise<void> {
  const host = hostOf(context.siteHosts, platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const staged = (hosted?.releases ?? []).filter((id) => id.startsWith(`${step.workflowId}-`) && id !== hosted?.currentRelease);
  for (const id of staged) await host.retire(refOf(step), id, orderOf(step));
}
