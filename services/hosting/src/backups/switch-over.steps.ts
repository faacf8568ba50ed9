import { ArchiveError, type ArchiveSink } from '@drydock/archive';
import { type RestoreContents, restoreContentsSchema } from '@drydock/contracts/hosting/backups';
import {
  type SitePlatform,
  type SiteStatus,
  sitePlatformSchema,
  siteStatusSchema,
} from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { problems } from '@drydock/contracts/platform/problems';
import { timeOfId } from '@drydock/contracts/platform/values';
import {
  type EndHooks,
  fencedCall,
  type StepContext,
  StepFailure,
  type WorkflowBuilder,
} from '@drydock/workflow/definition';
import { z } from 'zod';
import { refOf, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { hostOf, TransferFailure } from '../providers/site-host';
import { definitely } from '../sites/definite-failure';
import { noAnswer, type RecordedAnswer, recordOf, withDatabaseOf } from '../sites/probe.rules';
import { changeStatus } from '../sites/site.store';
import {
  findWritten,
  freezeTtlMs,
  frozenLimits,
  movingLimits,
  type PackedBackup,
  packBackup,
  verifyWritten,
} from './archive.steps';
import { expiryOf, type KeptBackup } from './backup.rules';
import { findLastRawBytes, insertBackup, markCompleted, markFailed } from './backup.store';
import { assertServes, besideLive, isOwnRelease, isRestored, standingOf, superseded } from './restore.steps';

export const switchOverInput = {
  safetyCopyId: z.uuid(),
  platform: sitePlatformSchema,
  statusBefore: siteStatusSchema,
  contents: restoreContentsSchema.optional(),
};

export interface SwitchOverInput {
  /** The id of the backup that is packed from the replaced release. */
  safetyCopyId: string;
  platform: SitePlatform;
  /** The status to which the site returns when the restore is over. */
  statusBefore: SiteStatus;
  /** Absent means files and database. */
  contents?: RestoreContents | undefined;
}

/** The outputs of earlier steps that the steps in this file need. */
interface Staged {
  /** `answer` is how the site answered when the backup was taken. Checkpoints of earlier versions lack it. */
  readonly recheck: { oldRelease: string; retentionDays: number; failsOnPurpose: boolean; answer?: RecordedAnswer };
  readonly stage: { releaseId: string };
}

/**
 * The output of `prove_safety_copy`: how the site answered before the restore. It is missing if an earlier version of
 * Drydock, which did not have this step, has already run the steps after it.
 */
interface Proven {
  readonly prove_safety_copy?: { answer: RecordedAnswer } | null;
}

/**
 * The second half of a restore from a backup or a copy. Makes the staged release live, and packs the replaced release
 * as a safety copy. A trial before the freeze proves that the safety copy can be made. If `probe` or a step before it
 * fails, everything is undone. After `probe` the restored site stays live even if `thaw` fails: the freeze ends by
 * itself, and then visitors may write to the site.
 */
export function switchOver<Input extends SwitchOverInput, Outputs extends Staged>(
  staged: WorkflowBuilder<WorkContext, Tx, Input, Outputs>,
) {
  const live = goLive(staged);
  return keepReplaced(live);
}

function goLive<Input extends SwitchOverInput, Outputs extends Staged>(
  staged: WorkflowBuilder<WorkContext, Tx, Input, Outputs>,
) {
  return staged
    .step('prove_safety_copy', {
      // An earlier version of Drydock, which did not have this step, may have run the steps after it. Then the restore
      // goes on without the trial, and the host keeps a replaced release that cannot be packed.
      skipIfPassed: true,
      ...movingLimits,
      weight: 5,
      run: async (step, context) => {
        const { oldRelease } = step.outputs.recheck;
        if (await isRestored(context, step, step.input.platform, oldRelease)) return { answer: noAnswer };
        const [answer] = await Promise.all([askLive(context, step), provePackable(context, step, oldRelease)]);
        return { answer };
      },
    })
    .step('freeze', {
      ...frozenLimits,
      weight: 0.2,
      run: async (step, context) => {
        const { platform } = step.input;
        if (await isRestored(context, step, platform, step.outputs.recheck.oldRelease)) return;
        await hostOf(context.siteHosts, platform).freeze(refOf(step), freezeTtlMs, fencedCall(step));
      },
      undo: async (step, context) => {
        const host = hostOf(context.siteHosts, step.input.platform);
        if ((await host.describe(refOf(step), step.signal)) !== null) await host.thaw(refOf(step), fencedCall(step));
      },
    })
    .step('switch', {
      ...frozenLimits,
      weight: 0.2,
      run: async (step, context) => {
        const move = { from: step.outputs.recheck.oldRelease, to: step.outputs.stage.releaseId };
        if (await isRestored(context, step, step.input.platform, move.from)) return;
        await definitely(
          hostOf(context.siteHosts, step.input.platform).switchRelease(refOf(step), move, fencedCall(step)),
        );
      },
      undo: async (step, context) => {
        const { oldRelease: to } = step.outputs.recheck;
        const standing = await standingOf(context, step, step.input.platform, to);
        // Nothing is undone if the old release is gone, or if the site no longer serves a release of this restore.
        if (standing.is !== 'restored' || !standing.releases.includes(to)) return;
        const move = { from: standing.releaseId, to };
        await definitely(
          hostOf(context.siteHosts, step.input.platform).switchRelease(refOf(step), move, fencedCall(step)),
        );
      },
    })
    .step('probe', {
      ...frozenLimits,
      weight: 0.2,
      run: async (step, context) => {
        const { oldRelease, failsOnPurpose, answer: recorded = noAnswer } = step.outputs.recheck;
        await assertRestored(context, step, oldRelease);
        const before = step.outputs.prove_safety_copy?.answer ?? noAnswer;
        const answer = step.input.contents === 'files' ? withDatabaseOf(before, recorded) : recorded;
        await assertServes(context, step, step.input.platform, { answer, failsOnPurpose });
      },
    })
    .pointOfNoReturn()
    .step('thaw', {
      ...frozenLimits,
      weight: 0.2,
      run: async (step, context) => {
        await assertRestored(context, step, step.outputs.recheck.oldRelease);
        await hostOf(context.siteHosts, step.input.platform).thaw(refOf(step), fencedCall(step));
      },
      commit: async (tx, step, _output, context) => {
        const { workflowId, input, subject } = step;
        const location = context.backupStorage.locationIn(step.mode);
        const { safetyCopyId: id } = input;
        // The list of backups is ordered by id, so the row gets the creation time that the id contains.
        const copy = { id, siteId: subject.id, kind: 'pre_restore', workflowId, createdAt: timeOfId(id) } as const;
        await insertBackup(tx, step, { ...copy, location });
      },
    });
}

function keepReplaced<Input extends SwitchOverInput, Outputs extends Staged & Proven>(
  live: WorkflowBuilder<WorkContext, Tx, Input, Outputs>,
) {
  return live
    .step('pack_safety_copy', {
      ...movingLimits,
      weight: 6,
      run: (step, context) => packSafetyCopy(context, step, step.outputs.recheck.oldRelease),
    })
    .step('verify_safety_copy', {
      ...movingLimits,
      weight: 3,
      run: async (step, context) => {
        const { pack_safety_copy: packed } = step.outputs;
        return 'refused' in packed ? null : verifyCopy(context, step, step.outputs.recheck.oldRelease, packed);
      },
      commit: async (tx, step, kept) => {
        const { pack_safety_copy: packed, recheck } = step.outputs;
        const answer = step.outputs.prove_safety_copy?.answer ?? noAnswer;
        const { safetyCopyId } = step.input;
        if ('refused' in packed || kept === null)
          return markFailed(tx, safetyCopyId, 'refused' in packed ? packed.refused.code : 'step_failed');
        const expiresAt = expiryOf(new Date(kept.completedAt), recheck.retentionDays);
        await markCompleted(tx, safetyCopyId, packed, { ...kept, expiresAt, answer });
      },
    })
    .step('retire', {
      weight: 0.2,
      run: (step, context) => {
        const { pack_safety_copy: packed, recheck } = step.outputs;
        return retireReplaced(context, step, 'refused' in packed ? recheck.oldRelease : null);
      },
    });
}

/**
 * The end of a restore from a backup or a copy: the site gets its former status back. After a failure, an unfinished
 * safety copy is marked as failed with the same code.
 */
export const restoreEnd: Required<Omit<EndHooks<WorkContext, Tx, SwitchOverInput>, 'parked'>> = {
  succeeded: (tx, run) => changeStatus(tx, run.subject.id, run.input.statusBefore),
  failed: async (tx, run, { code }) => {
    await changeStatus(tx, run.subject.id, run.input.statusBefore);
    await markFailed(tx, run.input.safetyCopyId, code);
  },
};

/**
 * Probes the live site, for the record of the safety copy. A site that does not answer is no failure, because customers
 * often restore such a site.
 */
async function askLive(context: WorkContext, step: CopyStep): Promise<RecordedAnswer> {
  const probe = await hostOf(context.siteHosts, step.input.platform)
    .probe(refOf(step), fencedCall(step))
    .catch(() => null);
  return probe === null ? noAnswer : recordOf(probe);
}

type CopyStep = StepContext<Pick<SwitchOverInput, 'safetyCopyId' | 'platform'>, unknown>;

/**
 * The result if there is no safety copy, because the replaced release cannot be packed and stays on the host, or
 * because that release is gone.
 */
interface KeptRelease {
  refused: { code: keyof typeof problems; detail: string };
  findings: Finding[];
}

const contentCode = 'site_content_refused';
const nowhere: ArchiveSink = { write: async () => undefined };

/**
 * Proves that the live release can be packed, by packing it while the site serves. The archive is discarded: it cannot
 * be the safety copy, because visitors still write to the site. Permanent failure `site_content_refused` if content
 * cannot be packed.
 */
async function provePackable(context: WorkContext, step: CopyStep, releaseId: string): Promise<void> {
  const { safetyCopyId: archiveId, platform } = step.input;
  const site = refOf(step);
  const archive = {
    sink: nowhere,
    archiveId,
    sequence: 1,
    createdAt: timeOfId(archiveId),
    expectedRawBytes: await findLastRawBytes(context.database.pool, site.siteId),
  };
  const call = { ...fencedCall(step), progress: step.progress };
  await definitely(hostOf(context.siteHosts, platform).pack(site, releaseId, archive, call));
}

/**
 * Packs the replaced release. If its content cannot be packed although the trial succeeded, the host keeps the release
 * and the restore goes on, because nobody can repair content that is no longer served.
 */
async function packSafetyCopy(
  context: WorkContext,
  step: CopyStep,
  releaseId: string,
): Promise<PackedBackup | KeptRelease> {
  const { safetyCopyId: backupId, platform } = step.input;
  if (!(await isReplacedThere(context, step, releaseId))) {
    const written = await findWritten(context, step, backupId);
    return written === null ? lostCopy(step, releaseId) : { ...written, findings: [] };
  }
  try {
    return await packBackup(context, step, { backupId, platform, releaseId });
  } catch (error) {
    const refused = refusedContent(error, step);
    if (refused === null) throw error;
    step.log.error(
      { release_id: releaseId, internal: String(error), alarm: 'safety_copy_failed' },
      'a replaced release cannot be packed and is kept',
    );
    const detail = `What was replaced cannot be packed: ${refused.detail}. Its release is kept until the next restore.`;
    return { refused, findings: [{ level: 'WARNING', code: 'safety_copy_not_taken', detail }] };
  }
}

/**
 * Whether the host still has the replaced release. If Drydock's database was put back from a backup, a run that is no
 * longer on record may have packed and removed the release. A release that this restore has made does not count:
 * `replacedBy` names one only if it has found no other.
 */
async function isReplacedThere(context: WorkContext, step: CopyStep, releaseId: string): Promise<boolean> {
  const hosted = await hostOf(context.siteHosts, step.input.platform).describe(refOf(step), step.signal);
  return !isOwnRelease(step, releaseId) && (hosted?.releases.includes(releaseId) ?? false);
}

/** The result if the replaced release and its safety copy are both gone. */
function lostCopy(step: CopyStep, releaseId: string): KeptRelease {
  step.log.error(
    { release_id: releaseId, alarm: 'safety_copy_failed' },
    'a replaced release is gone, and no safety copy of it is found',
  );
  const detail = 'What was replaced is not on the host any more, and no safety copy of it was found.';
  return {
    refused: { code: 'superseded', detail },
    findings: [{ level: 'WARNING', code: 'safety_copy_not_taken', detail }],
  };
}

/**
 * Verifies the safety copy. Resolves with null if the copy is faulty and the replaced release is gone, because then no
 * other copy can be made.
 */
async function verifyCopy(
  context: WorkContext,
  step: CopyStep,
  releaseId: string,
  archive: PackedBackup,
): Promise<KeptBackup | null> {
  try {
    return await verifyWritten(context, step, step.input.safetyCopyId, archive);
  } catch (error) {
    if (!(error instanceof StepFailure) || (await isReplacedThere(context, step, releaseId))) throw error;
    step.log.error(
      { internal: error.message, alarm: 'safety_copy_failed' },
      'a safety copy cannot be read, and what it was made of is gone',
    );
    return null;
  }
}

/** Permanent failure `superseded` unless the site serves a release that this restore has staged. */
async function assertRestored(context: WorkContext, step: CopyStep, oldRelease: string): Promise<void> {
  const standing = await standingOf(context, step, step.input.platform, oldRelease);
  if (standing.is !== 'restored') throw superseded(standing);
}

function refusedContent(error: unknown, step: CopyStep): KeptRelease['refused'] | null {
  if (error instanceof StepFailure) {
    const { code, detail = problems[contentCode].title } = error.problem;
    return code === contentCode ? { code, detail } : null;
  }
  // Content that still cannot be read at the last attempt counts as refused.
  const isAboutContent =
    error instanceof TransferFailure || (error instanceof ArchiveError && error.reason === 'source_unreadable');
  if (!isAboutContent || step.signal.aborted || step.failures + 1 < movingLimits.attemptsMax) return null;
  return { code: contentCode, detail: problems[contentCode].title };
}

/**
 * Removes every release except the live one and `keptRelease`, including releases that earlier restores have kept or
 * left unfinished.
 */
async function retireReplaced(context: WorkContext, step: CopyStep, keptRelease: string | null): Promise<void> {
  const host = hostOf(context.siteHosts, step.input.platform);
  const hosted = await host.describe(refOf(step), step.signal);
  const replaced = besideLive(hosted).filter((id) => id !== keptRelease);
  for (const id of replaced) await definitely(host.retire(refOf(step), id, fencedCall(step)));
}
