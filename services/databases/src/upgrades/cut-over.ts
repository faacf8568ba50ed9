import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { fencedCall, type StepContext } from '@drydock/workflow/definition/definition';
import { conclude } from '@drydock/workflow/definition/step-error';
import { refOf, type WorkContext } from '../databases/work';
import { type Cutover, DatabaseProviderError, type UpgradeName } from '../providers/database-provider';

type Step = StepContext<unknown, unknown>;

const attemptsMax = 4;

/**
 * Whether the database was switched over by this workflow: before it was recorded, or before the record was put back from a backup. Then nothing of what leads to
 * the switch is done again, since customers have written to the new instance.
 */
export async function hasSwitched({ provider }: WorkContext, step: Step): Promise<boolean> {
  const hosted = await provider.describe(refOf(step), step.signal);
  if (hosted === null) return false;
  const { switched, upgrade } = hosted;
  return switched.includes(step.workflowId) || (upgrade?.upgradeId === step.workflowId && upgrade.phase !== 'prepared');
}

/** Takes a move back. One that was switched to after all, and one of a database that is gone, is left as it is. */
export async function takeBack({ provider }: WorkContext, step: Step): Promise<void> {
  await provider.abandon(refOf(step), { upgradeId: step.workflowId }, fencedCall(step)).catch((error: unknown) => {
    if (error instanceof DatabaseProviderError && (error.refusal === 'switched' || error.refusal === 'unknown_database')) return;
    throw error;
  });
}

/** Ends what a move of which no workflow is on record has left on the host: only one move is made at a time. */
export async function endForgotten({ provider }: WorkContext, step: Step): Promise<void> {
  const { upgrade = null } = (await provider.describe(refOf(step), step.signal)) ?? {};
  if (upgrade === null || upgrade.upgradeId === step.workflowId || upgrade.phase === 'finished') return;
  step.log.warn({ upgrade_id: upgrade.upgradeId, phase: upgrade.phase }, 'ends a move that nobody has on record');
  await (upgrade.phase === 'prepared' ? provider.abandon : provider.finish)(refOf(step), upgrade, fencedCall(step));
}

/**
 * Level, and then over. While the pointer has not moved the old instance serves on and nothing is lost: after a few tries the upgrade or restore is taken back
 * by itself, with the code `takenBack`. Behind it only forward is left.
 */
export async function cutOver(
  context: WorkContext,
  step: Step,
  upgrade: UpgradeName,
  { prepare, takenBack }: { prepare?: () => Promise<void>; takenBack: ProblemCode },
): Promise<Cutover> {
  const { provider } = context;
  const ref = refOf(step);
  try {
    if (!(await hasSwitched(context, step))) await prepare?.();
    return await provider.cutover(ref, upgrade, fencedCall(step));
  } catch (error) {
    step.signal.throwIfAborted();
    const isFinal = error instanceof DatabaseProviderError && error.refusal !== 'stale_fence';
    if (!isFinal && step.attempt < attemptsMax) throw error;
    const hosted = await provider.describe(ref, step.signal);
    // A move that is not there was taken back, and the record of that was lost.
    const isOurs = hosted?.upgrade?.upgradeId === step.workflowId;
    if (isOurs ? hosted.upgrade?.phase !== 'prepared' : hosted?.switched.includes(step.workflowId)) throw error;
    throw conclude(takenBack, { internal: error instanceof Error ? error.message : String(error) });
  }
}
