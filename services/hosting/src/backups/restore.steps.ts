import { setTimeout as wait } from 'node:timers/promises';
import { describeLoadFindings } from '@drydock/agent/database/load-findings';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { fencedCall, type StepContext } from '@drydock/workflow/definition/definition';
import { fail } from '@drydock/workflow/definition/step-error';
import { type ArchiveToStage, type HostedSite, hostOf, type Probe } from '../providers/site-host';
import { askSite, outcomeOf, whileFrozen } from '../sites/ask-site';
import { failedOf, type RecordedAnswer, serves, textOfRecord } from '../sites/probe.rules';
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

/**
 * How a site stands, as its host tells it, to a restore of it. The host is right where it and the restore's own record differ: when Drydock's database was put
 * back from a backup, the record has gone back in time and the site has not.
 */
export type Standing =
  /** It serves what it served when the restore began. */
  | { is: 'before' }
  /** It serves what this restore has staged. */
  | { is: 'restored'; releaseId: string; releases: readonly string[] }
  /** It serves something else: later work was done on it. */
  | { is: 'changed' }
  | { is: 'gone' };

/** Whether this restore has made the release, in whichever attempt. */
export const isOwnRelease = ({ workflowId }: Pick<Step, 'workflowId'>, releaseId: string): boolean =>
  releaseId.startsWith(`${workflowId}-`);

/**
 * The release that a beginning restore replaces: the live one.
 * If the live one was staged by this very restore, an earlier run went this far and its record was lost. The release it
 * replaced is then the only other one.
 * If there is no other release, or several, returns the live one. It is the restore's own, which says that no old
 * release is known.
 */
export function replacedBy(step: Step, { currentRelease, releases }: Pick<HostedSite, 'currentRelease' | 'releases'>): string {
  if (!isOwnRelease(step, currentRelease)) return currentRelease;
  const others = releases.filter((id) => !isOwnRelease(step, id));
  return others.length === 1 ? (others[0] ?? currentRelease) : currentRelease;
}

export async function standingOf(context: WorkContext, step: Step, platform: SitePlatform, oldRelease: string): Promise<Standing> {
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  if (hosted === null) return { is: 'gone' };
  const { currentRelease: releaseId, releases } = hosted;
  if (isOwnRelease(step, releaseId)) return { is: 'restored', releaseId, releases };
  return { is: releaseId === oldRelease ? 'before' : 'changed' };
}

/** Fails for good with `superseded`: the site stays as it is. */
export function superseded(standing: Exclude<Standing, { is: 'restored' }>): Error {
  const found = { before: 'it was switched back', changed: 'another release is served', gone: 'the site is not there' }[standing.is];
  return fail('superseded', { internal: `${found}: the record of this restore is older than the site` });
}

/** True when the restored release is live already; then what leads there has nothing to do. */
export async function isRestored(context: WorkContext, step: Step, platform: SitePlatform, oldRelease: string): Promise<boolean> {
  const standing = await standingOf(context, step, platform, oldRelease);
  if (standing.is === 'changed' || standing.is === 'gone') throw superseded(standing);
  return standing.is === 'restored';
}

/** Each attempt stages a release of its own, so that one which lost its lease can never write into what another has made live. */
const releaseOf = ({ workflowId, fence }: Step): string => `${workflowId}-${fence}`;

/** An archive, or a chain of them, as a whole release beside the live one. Resolves with its id, and tells what the host did not restore whole. */
export async function stageRelease(
  context: WorkContext,
  step: Step,
  { platform, slowsOnPurpose, oldRelease }: { platform: SitePlatform; slowsOnPurpose: boolean; oldRelease: string },
  toStage: ArchiveToStage,
): Promise<{ releaseId: string; findings: Finding[] }> {
  const standing = await standingOf(context, step, platform, oldRelease);
  if (standing.is === 'restored') return { releaseId: standing.releaseId, findings: [] };
  if (standing.is !== 'before') throw superseded(standing);
  await discardStaged(context, step, platform);
  if (slowsOnPurpose) await wait(context.slowMs, undefined, { signal: step.signal });
  const releaseId = releaseOf(step);
  const call = { ...fencedCall(step), progress: step.progress };
  const { lost, database } = await definitely(hostOf(context.siteHosts, platform).stage(refOf(step), releaseId, toStage, call));
  const alone = toStage.contents === 'files' ? [filesAlone] : [];
  return { releaseId, findings: [...alone, ...findingsOfLost(lost), ...describeLoadFindings(database)] };
}

/** A release that was never anything but empty has an empty database. */
const filesAlone: Finding = {
  level: 'WARNING',
  code: 'files_only',
  detail: 'The files alone come back. The database is the one that the site had before, which is an empty one for a site that was deleted.',
};

/** Removes whatever this workflow has staged and not made live; nobody else's releases. */
export async function discardStaged(context: WorkContext, step: Step, platform: SitePlatform): Promise<void> {
  const host = hostOf(context.siteHosts, platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const staged = (hosted?.releases ?? []).filter((id) => id.startsWith(`${step.workflowId}-`) && id !== hosted?.currentRelease);
  for (const id of staged) await host.retire(refOf(step), id, fencedCall(step));
}

interface Expected {
  /** How the site answered when the backup was taken. */
  answer: RecordedAnswer;
  failsOnPurpose: boolean;
}

/**
 * Asks the restored site while its customers still wait. Fails for good with `restore_probe_failed` when it answers worse than the record allows:
 * everything is then switched back.
 */
export async function assertServes(context: WorkContext, step: Step, platform: SitePlatform, expected: Expected): Promise<void> {
  const probe = await probeRestored(context, step, platform, expected);
  const failed = failedOf(probe, expected.answer);
  if (failed.length > 0) throw probeFailed(probe, failed, expected.answer);
}

/**
 * Asks a site that there is nothing to switch back from: what its own code makes of a request need not be the rebuild's fault. Fails for good with
 * `restore_probe_failed` when its database takes no query, unless it took none when the backup was taken.
 */
export async function assertRebuilt(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  expected: Expected,
): Promise<{ serves: boolean }> {
  const probe = await probeRestored(context, step, platform, expected);
  const failed = failedOf(probe, expected.answer).filter((part) => part === 'SQL');
  if (failed.length > 0) throw probeFailed(probe, failed, expected.answer);
  return { serves: serves(probe) };
}

async function probeRestored(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  { failsOnPurpose, answer }: Expected,
): Promise<Probe> {
  if (failsOnPurpose) throw fail('restore_probe_failed', { internal: 'the sandbox site asked for it by its name' });
  // A pause may have outlasted the freeze; the step that follows thaws.
  if (step.attempt > 1) await hostOf(context.siteHosts, platform).freeze(refOf(step), probeFreezeMs, fencedCall(step));
  return askSite(context, step, platform, whileFrozen, answer);
}

/** Longer than one probe and the pause before the next one. */
const probeFreezeMs = 15_000;

function probeFailed(probe: Probe, failed: readonly string[], recorded: RecordedAnswer): Error {
  const outcome = outcomeOf(probe);
  const then = `When the backup was taken: ${textOfRecord(recorded)}`;
  const detail = `The restored site does not serve: ${failed.join(' and ')} failed. ${outcome}. ${then}.`;
  return fail('restore_probe_failed', { detail, internal: `${outcome}: ${probe.detail}` });
}
