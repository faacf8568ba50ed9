import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { conclude, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import { type Cutover, DatabaseProviderError, type UpgradeName } from '../providers/database-provider';

type Step = StepContext<unknown, unknown>;

/** Fewer than the engine's five, so that this step says why the upgrade failed. */
const attemptsMax = 4;

/**
 * Whether this workflow has switched the database already. The record of that may be missing, because it was not
 * written yet or the database was put back from a backup. Then no step before the switch is repeated, because customers
 * have written to the new instance.
 */
export async function hasSwitched({ provider }: WorkContext, step: Step): Promise<boolean> {
  const hosted = await provider.describe(refOf(step), step.signal);
  if (hosted === null) return false;
  const { switched, upgrade } = hosted;
  return switched.includes(step.workflowId) || (upgrade?.upgradeId === step.workflowId && upgrade.phase !== 'prepared');
}

/** Undoes a move. A move that has switched after all, and one of a database that is gone, are left as they are. */
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
 * Ends a move on the host that no workflow on record belongs to: a host makes only one move of a database at a time.
 */
export async function endForgotten({ provider }: WorkContext, step: Step): Promise<void> {
  const { upgrade = null } = (await provider.describe(refOf(step), step.signal)) ?? {};
  if (upgrade === null || upgrade.upgradeId === step.workflowId || upgrade.phase === 'finished') return;
  step.log.warn({ upgrade_id: upgrade.upgradeId, phase: upgrade.phase }, 'ends a move that nobody has on record');
  await (upgrade.phase === 'prepared' ? provider.abandon : provider.finish)(refOf(step), upgrade, fencedCall(step));
}

/**
 * Waits until the new server has every change, then switches. Until the pointer has moved, the old instance stays in
 * use and nothing is lost. So after a few tries the upgrade or restore is undone, with the code `takenBack`. After the
 * move it can only be completed.
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
    // A move that the host does not know was undone, and the record of that was lost.
    const isOurs = hosted?.upgrade?.upgradeId === step.workflowId;
    if (isOurs ? hosted.upgrade?.phase !== 'prepared' : hosted?.switched.includes(step.workflowId)) throw error;
    throw conclude(takenBack, { internal: error instanceof Error ? error.message : String(error) });
  }
}
