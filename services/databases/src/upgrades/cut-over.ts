import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { conclude, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import { type Cutover, DatabaseProviderError, type UpgradeName } from '../providers/database-provider';

type Step = StepContext<unknown, unknown>;

/**
 * After this many failures the step `cutover` gives up, and the workflow is undone with a reason. It must be fewer than
 * the default of five for every step, after which the workflow would wait for staff instead.
 */
const attemptsMax = 4;

/**
 * Whether this workflow has already switched the database. The record of the switch may be missing, because it was not
 * written yet or because Drydock's own database was restored to an earlier moment. Steps before the switch must not be
 * repeated after it, because customers have written to the new instance since.
 */
export async function hasSwitched({ provider }: WorkContext, step: Step): Promise<boolean> {
  const hosted = await provider.describe(refOf(step), step.signal);
  if (hosted === null) return false;
  const { switched, upgrade } = hosted;
  return switched.includes(step.workflowId) || (upgrade?.upgradeId === step.workflowId && upgrade.phase !== 'prepared');
}

/** Undoes an upgrade or a restore. Does nothing after the switch, or if the database is gone. */
export async function takeBack({ provider }: WorkContext, step: Step): Promise<void> {
  await provider.abandon(refOf(step), { upgradeId: step.workflowId }, fencedCall(step)).catch((error: unknown) => {
    if (
      error instanceof DatabaseProviderError &&
      (error.refusal === 'switched' || error.refusal === 'unknown_database')
    )
      return;
    throw error;
  });
}

/**
 * Ends an earlier upgrade or restore that the agent still knows and that no workflow on record continues. A database
 * can have only one at a time, so the earlier one would block this workflow.
 */
export async function endForgotten({ provider }: WorkContext, step: Step): Promise<void> {
  const { upgrade = null } = (await provider.describe(refOf(step), step.signal)) ?? {};
  if (upgrade === null || upgrade.upgradeId === step.workflowId || upgrade.phase === 'finished') return;
  step.log.warn({ upgrade_id: upgrade.upgradeId, phase: upgrade.phase }, 'ends a move that nobody has on record');
  await (upgrade.phase === 'prepared' ? provider.abandon : provider.finish)(refOf(step), upgrade, fencedCall(step));
}

/**
 * Runs `prepare`, then switches. If that is refused for good, or has failed `attemptsMax` times, and the pointer has
 * not moved, the workflow is undone with the code `takenBack`: the old instance still serves, so nothing is lost. Once
 * the pointer has moved, the workflow can only be completed.
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
    if (!isFinal && step.failures + 1 < attemptsMax) throw error;
    const hosted = await provider.describe(ref, step.signal);
    // If the agent does not know the upgrade, the upgrade was already undone, and the record of its end was lost.
    const isOurs = hosted?.upgrade?.upgradeId === step.workflowId;
    if (isOurs ? hosted.upgrade?.phase !== 'prepared' : hosted?.switched.includes(step.workflowId)) throw error;
    throw conclude(takenBack, { internal: error instanceof Error ? error.message : String(error) });
  }
}
