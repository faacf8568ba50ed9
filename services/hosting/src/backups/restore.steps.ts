import { setTimeout as wait } from 'node:timers/promises';
import { describeLoadFindings } from '@drydock/agent/database';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { conclude, fail, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import { type ArchiveToStage, type HostedSite, hostOf, type Probe } from '../providers/site-host';
import { askSite, outcomeOf, whileFrozen } from '../sites/ask-site';
import { definitely } from '../sites/definite-failure';
import { failedOf, type RecordedAnswer, serves, textOfRecord } from '../sites/probe.rules';
import { hasSpace, neededBytes } from './backup.rules';
import { findingsOfLost } from './skipped.view';

type Step = StepContext<unknown, unknown>;

/** Permanent failure `storage_full` if the site's host has no room for one more release of `rawBytes`. */
export async function assertRoom(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  rawBytes: number,
): Promise<void> {
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  const needed = neededBytes({ rawBytes });
  const freeBytes = hosted?.freeBytes ?? 0;
  if (!hasSpace(needed, freeBytes))
    throw fail('storage_full', { internal: `${needed} bytes needed, ${freeBytes} free` });
}

/**
 * The state of a site under restore, as its host reports it. The record of the restore may be older than this state, if
 * Drydock's database was put back from a backup.
 */
export type Standing =
  /** The site serves the release that was live when the restore began. */
  | { is: 'before' }
  /** The site serves a release that this restore has staged. */
  | { is: 'restored'; releaseId: string; releases: readonly string[] }
  /** The site serves a third release, because later work has changed the site. */
  | { is: 'changed' }
  | { is: 'gone' };

/** Whether any attempt of this restore has made the release. */
export const isOwnRelease = ({ workflowId }: Pick<Step, 'workflowId'>, releaseId: string): boolean =>
  releaseId.startsWith(`${workflowId}-`);

/**
 * The release that a restore replaces: usually the live one. A live release that this restore has made itself shows
 * that an earlier run has switched and its record was lost. Then the replaced release is the only one on the host that
 * this restore has not made. If there are several of these or none, the result is the live release.
 */
export function replacedBy(
  step: Step,
  { currentRelease, releases }: Pick<HostedSite, 'currentRelease' | 'releases'>,
): string {
  if (!isOwnRelease(step, currentRelease)) return currentRelease;
  const others = releases.filter((id) => !isOwnRelease(step, id));
  return others.length === 1 ? (others[0] ?? currentRelease) : currentRelease;
}

export async function standingOf(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  oldRelease: string,
): Promise<Standing> {
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  if (hosted === null) return { is: 'gone' };
  const { currentRelease: releaseId, releases } = hosted;
  if (isOwnRelease(step, releaseId)) return { is: 'restored', releaseId, releases };
  return { is: releaseId === oldRelease ? 'before' : 'changed' };
}

/**
 * The permanent failure `superseded`. `conclude` makes the workflow undo its steps even after the point of no return,
 * instead of waiting for staff. Staff have nothing to decide, because the host has shown that the site does not serve a
 * release of this restore.
 */
export function superseded(standing: Exclude<Standing, { is: 'restored' }>): Error {
  const found = { before: 'it was switched back', changed: 'another release is served', gone: 'the site is not there' }[
    standing.is
  ];
  return conclude('superseded', { internal: `${found}: the record of this restore is older than the site` });
}

/**
 * Whether a release of this restore is live already. If so, the steps up to and including `switch` have nothing to do.
 * Throws `superseded` if later work has changed the site, or if the site is gone.
 */
export async function isRestored(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  oldRelease: string,
): Promise<boolean> {
  const standing = await standingOf(context, step, platform, oldRelease);
  if (standing.is === 'changed' || standing.is === 'gone') throw superseded(standing);
  return standing.is === 'restored';
}

/**
 * Each attempt stages its own release. So an attempt that has lost its lease, but is still writing, cannot write into a
 * release that another attempt makes live.
 */
const releaseOf = ({ workflowId, fence }: Step): string => `${workflowId}-${fence}`;

/**
 * Unpacks an archive, or a chain of archives, into a complete release beside the live one. Resolves with the id of the
 * new release, and with findings about whatever the host could not restore exactly.
 */
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
  const { lost, database } = await definitely(
    hostOf(context.siteHosts, platform).stage(refOf(step), releaseId, toStage, call),
  );
  const alone = toStage.contents === 'files' ? [filesAlone] : [];
  return { releaseId, findings: [...alone, ...findingsOfLost(lost), ...describeLoadFindings(database)] };
}

const filesAlone: Finding = {
  level: 'WARNING',
  code: 'files_only',
  detail:
    'Only the files are restored. The database is the one that the site had before; for a deleted site it is empty.',
};

/**
 * Every release on the host but the live one, whole or only begun. The caller's fence keeps `retire` from removing a
 * release that a later attempt is staging.
 */
export const besideLive = (hosted: Pick<HostedSite, 'currentRelease' | 'releases' | 'begun'> | null): string[] =>
  hosted === null ? [] : [...hosted.releases, ...(hosted.begun ?? [])].filter((id) => id !== hosted.currentRelease);

/** Removes the releases that this workflow has staged or begun to stage, but never the live one. */
export async function discardStaged(context: WorkContext, step: Step, platform: SitePlatform): Promise<void> {
  const host = hostOf(context.siteHosts, platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const staged = besideLive(hosted).filter((id) => isOwnRelease(step, id));
  for (const id of staged) await host.retire(refOf(step), id, fencedCall(step));
}

interface Expected {
  answer: RecordedAnswer;
  failsOnPurpose: boolean;
}

/**
 * Probes the restored site while its visitors still wait. Permanent failure `restore_probe_failed` if the site answers
 * worse than `expected.answer` records. The undo of `switch` then makes the old release live again.
 */
export async function assertServes(
  context: WorkContext,
  step: Step,
  platform: SitePlatform,
  expected: Expected,
): Promise<void> {
  const probe = await probeRestored(context, step, platform, expected);
  const failed = failedOf(probe, expected.answer);
  if (failed.length > 0) throw probeFailed(probe, failed, expected.answer);
}

/**
 * Probes a deleted site that was rebuilt. Only its database counts: a bad page may be the fault of the site's own code,
 * and there is no release to switch back to. Permanent failure `restore_probe_failed` if the database does not answer.
 * The database may refuse queries only if `expected.answer` records a refusal.
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
  // The freeze may have ended during the pause before this attempt, so the site is frozen again. The step `thaw` ends
  // the freeze.
  if (step.attempt > 1) await hostOf(context.siteHosts, platform).freeze(refOf(step), probeFreezeMs, fencedCall(step));
  return askSite(context, step, platform, whileFrozen, answer);
}

/**
 * How long the freeze for another attempt at the probe lasts: longer than a probe and the pause after it, and longer
 * than the lease of a worker that dies.
 */
const probeFreezeMs = 45_000;

function probeFailed(probe: Probe, failed: readonly string[], recorded: RecordedAnswer): Error {
  const outcome = outcomeOf(probe);
  const then = `When the backup was taken: ${textOfRecord(recorded)}`;
  const detail = `The restored site does not serve: ${failed.join(' and ')} failed. ${outcome}. ${then}.`;
  return fail('restore_probe_failed', { detail, internal: `${outcome}: ${probe.detail}` });
}
