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

/** Permanent failure `storage_full` if the site's host has no room for a release of `rawBytes` beside the live one. */
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
 * The state of a site that is being restored, as its host reports it. If the restore's own record differs, the host is
 * right. The record goes back in time when Drydock's database is put back from a backup, but the site does not.
 */
export type Standing =
  /** The site serves the release that was live when the restore began. */
  | { is: 'before' }
  /** The site serves the release that this restore has staged. */
  | { is: 'restored'; releaseId: string; releases: readonly string[] }
  /** The site serves another release, because later work has changed it. */
  | { is: 'changed' }
  | { is: 'gone' };

/** Whether any attempt of this restore has made the release. */
export const isOwnRelease = ({ workflowId }: Pick<Step, 'workflowId'>, releaseId: string): boolean =>
  releaseId.startsWith(`${workflowId}-`);

/**
 * Finds the release that a restore replaces, which is the live one when the restore begins. If this restore itself has
 * made the live release, the record of its earlier run was lost. The replaced release is then the only release that
 * this restore has not made. If there is not exactly one such release, the live release is returned.
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
 * Permanent failure `superseded`. The site is not changed. Staff have nothing to decide, because the host itself has
 * reported the state.
 */
export function superseded(standing: Exclude<Standing, { is: 'restored' }>): Error {
  const found = { before: 'it was switched back', changed: 'another release is served', gone: 'the site is not there' }[
    standing.is
  ];
  return conclude('superseded', { internal: `${found}: the record of this restore is older than the site` });
}

/** Whether the restored release is live already. If it is, the steps before the switch do nothing. */
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
 * Each attempt stages a release of its own, because an attempt that has lost its lease may still write. It must not
 * write into the live release of another attempt.
 */
const releaseOf = ({ workflowId, fence }: Step): string => `${workflowId}-${fence}`;

/**
 * Unpacks an archive, or a chain of archives, into a complete release beside the live one. Resolves with the release's
 * id, and with findings about paths that the host did not restore completely.
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

/** The finding of a restore of files onto a new site, whose first release has an empty database. */
const filesAlone: Finding = {
  level: 'WARNING',
  code: 'files_only',
  detail:
    'Only the files are restored. The database is the one that the site had before; for a deleted site it is empty.',
};

/** Removes the releases that this workflow has staged, except the live release. */
export async function discardStaged(context: WorkContext, step: Step, platform: SitePlatform): Promise<void> {
  const host = hostOf(context.siteHosts, platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const staged = (hosted?.releases ?? []).filter(
    (id) => id.startsWith(`${step.workflowId}-`) && id !== hosted?.currentRelease,
  );
  for (const id of staged) await host.retire(refOf(step), id, fencedCall(step));
}

interface Expected {
  /** How the site answered when the backup was taken. */
  answer: RecordedAnswer;
  failsOnPurpose: boolean;
}

/**
 * Probes the restored site while its visitors still wait. Permanent failure `restore_probe_failed` if the site answers
 * worse than the recorded `answer` allows. The undo of the workflow then makes the old release live again.
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
 * Probes a rebuilt site. There is no release to switch back to, and the page's answer may be the fault of the site's
 * own code. So only the database counts. Permanent failure `restore_probe_failed` if it takes no query. Such a database
 * is accepted only if it also took no query when the backup was taken.
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
  // The pause before this attempt may have outlasted the freeze, so the site is frozen again. The next step thaws it.
  if (step.attempt > 1) await hostOf(context.siteHosts, platform).freeze(refOf(step), probeFreezeMs, fencedCall(step));
  return askSite(context, step, platform, whileFrozen, answer);
}

/**
 * The freeze outlasts one probe and the pause before the next probe. If the worker dies, the freeze also outlasts the
 * worker's lease.
 */
const probeFreezeMs = 45_000;

function probeFailed(probe: Probe, failed: readonly string[], recorded: RecordedAnswer): Error {
  const outcome = outcomeOf(probe);
  const then = `When the backup was taken: ${textOfRecord(recorded)}`;
  const detail = `The restored site does not serve: ${failed.join(' and ')} failed. ${outcome}. ${then}.`;
  return fail('restore_probe_failed', { detail, internal: `${outcome}: ${probe.detail}` });
}
