import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { fencedCall, type StepContext } from '@drydock/workflow/definition/definition';
import { conclude } from '@drydock/workflow/definition/step-error';
import { refOf, type WorkContext } from '../databases/work';
import { type Cutover, DatabaseProviderError, type UpgradeName } from '../providers/database-provider';

type Step = StepContext<unknown, unknown>;

const attemptsMax = 4;

/**
 * Level, and then over. While the pointer has not moved the old instance serves on and nothing is lost: after a few tries the upgrade or restore is taken back
 * by itself, with the code `takenBack`. Behind it only forward is left.
 */
export async function cutOver(
  { provider }: WorkContext,
  step: Step,
  upgrade: UpgradeName,
  { prepare, takenBack }: { prepare?: () => Promise<void>; takenBack: ProblemCode },
): Promise<Cutover> {
  const ref = refOf(step);
  try {
    await prepare?.();
    return await provider.cutover(ref, upgrade, fencedCall(step));
  } catch (error) {
    step.signal.throwIfAborted();
    const isFinal = error instanceof DatabaseProviderError && error.refusal !== 'stale_fence';
    if (!isFinal && step.attempt < attemptsMax) throw error;
    const hosted = await provider.describe(ref, step.signal);
    if (hosted?.upgrade?.phase !== 'prepared') throw error;
    throw conclude(takenBack, { internal: error instanceof Error ? error.message : String(error) });
  }
}
