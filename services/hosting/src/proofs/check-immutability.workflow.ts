import { setTimeout as wait } from 'node:timers/promises';
import { immutableDays } from '@drydock/contracts/hosting/backups';
import type { Mode } from '@drydock/contracts/platform/values';
import { z } from 'zod';
import type { ImmutabilityReason } from '../backups/proof.rules';
import { defineWorkflow, type WorkContext } from '../context/context';
import { type Canary, CanaryError, type CanaryStorage } from '../providers/backup-storage';
import { recordProof } from './proof.store';

const secondMs = 1_000;
const dayMs = 24 * 3_600 * secondMs;
/**
 * The check waits this much longer than the lock of the control object lasts, because a storage has its own clock and
 * keeps whole seconds.
 */
const clockSlackMs = 1.5 * secondMs;

/**
 * The two test objects. The storage must refuse to delete the canary, which is locked for weeks. It must delete the
 * control, whose lock ends soon.
 */
interface Planted {
  canary: Canary;
  until: string;
  control: Canary;
  controlUntil: string;
}

/**
 * For these reasons an alarm is raised, because the storage has broken the promise of Object Lock. Any other reason
 * means only that the check could not prove anything.
 */
const brokenPromises: ReadonlySet<ImmutabilityReason> = new Set(['delete_succeeded', 'retention_too_short']);

type Finding<T> = { reason: ''; found: T } | { reason: Exclude<ImmutabilityReason, ''>; found: null };

const found = <T>(value: T): Finding<T> => ({ reason: '', found: value });
const failed = (reason: Exclude<ImmutabilityReason, ''>): Finding<never> => ({ reason, found: null });

/**
 * Each step takes the result of the step before it. If a step finds a reason why immutability is not proved, the later
 * steps only pass that reason on, and the last step records it. If the storage does not answer, the workflow fails and
 * records `storage_unreachable`.
 */
export const checkImmutabilityWorkflow = defineWorkflow({ kind: 'check_immutability', input: z.strictObject({}) })
  .step('clean_up', { run: async (step, context) => await context.backupStorage.canary(step.mode)?.removeUnlocked() })
  .step('plant', { run: (step, context) => plant(context, step) })
  .step('read_back', {
    run: async (step, context) => {
      const planted = step.outputs.plant;
      return planted.reason === '' ? readBack(canaryOf(context, step.mode), planted.found) : planted;
    },
  })
  .step('positive_control', {
    run: async (step, context) => {
      const planted = step.outputs.read_back;
      return planted.reason === ''
        ? deleteControl(context, canaryOf(context, step.mode), planted.found, step.signal)
        : planted;
    },
  })
  .step('attack', {
    run: async (step, context) => {
      const planted = step.outputs.positive_control;
      const reason =
        planted.reason === '' ? await attack(canaryOf(context, step.mode), planted.found.canary) : planted.reason;
      if (brokenPromises.has(reason))
        step.log.error({ alarm: 'immutability_lost', reason }, 'the storage does not keep backups as it promised');
      return { reason, finishedAt: context.now().toISOString() };
    },
    commit: (tx, { workflowId, mode }, { reason, finishedAt: at }, context) => {
      const proof = { kind: 'immutability', mode, place: context.backupStorage.placeIn(mode), workflowId } as const;
      return recordProof(tx, { ...proof, reason, finishedAt: new Date(at) });
    },
  })
  .onEnd({
    failed: (tx, { workflowId, mode }, _problem, context) => {
      const proof = { kind: 'immutability', mode, place: context.backupStorage.placeIn(mode), workflowId } as const;
      return recordProof(tx, { ...proof, reason: 'storage_unreachable', finishedAt: context.now() });
    },
  })
  .build();

/** Throws if object storage was configured when the check began, and is not any more. */
function canaryOf({ backupStorage }: WorkContext, mode: Mode): CanaryStorage {
  const canary = backupStorage.canary(mode);
  if (canary === null) throw new Error('there is no object storage any more');
  return canary;
}

async function plant(
  context: WorkContext,
  step: { mode: Mode; workflowId: string; fence: string },
): Promise<Finding<Planted>> {
  const storage = context.backupStorage.canary(step.mode);
  try {
    if (storage === null || !(await storage.hasLock())) return failed('no_rule');
    const name = `${step.workflowId}-${step.fence}`;
    const [until, controlUntil] = [new Date(context.now().getTime() + immutableDays * dayMs), context.controlEnd()];
    const canary = await storage.write(name, until);
    const control = await storage.write(`${name}-control`, controlUntil);
    return found({ canary, until: until.toISOString(), control, controlUntil: controlUntil.toISOString() });
  } catch (error) {
    if (error instanceof CanaryError) return failed(error.reason);
    throw error;
  }
}

async function readBack(storage: CanaryStorage, planted: Planted): Promise<Finding<Planted>> {
  const lock = await storage.readLock(planted.canary);
  const isKept = lock?.mode === 'COMPLIANCE' && lock.until.getTime() >= Date.parse(planted.until) - secondMs;
  return isKept ? found(planted) : failed('retention_too_short');
}

/**
 * Deletes the control. This proves that the credential may delete at all. Without that right the storage would refuse
 * to delete the canary too, which would prove nothing about its lock.
 */
async function deleteControl(
  { now }: WorkContext,
  storage: CanaryStorage,
  planted: Planted,
  signal: AbortSignal,
): Promise<Finding<Planted>> {
  const leftMs = Date.parse(planted.controlUntil) + clockSlackMs - now().getTime();
  if (leftMs > 0) await wait(leftMs, undefined, { signal });
  const isGone = !(await storage.exists(planted.control));
  // If the object is gone, an earlier attempt of this step has deleted it.
  const answer = isGone ? 'deleted' : await storage.delete(planted.control);
  return answer === 'deleted' && !(await storage.exists(planted.control))
    ? found(planted)
    : failed('positive_control_failed');
}

async function attack(storage: CanaryStorage, canary: Canary): Promise<ImmutabilityReason> {
  const answer = await storage.delete(canary);
  if (!(await storage.exists(canary))) return 'delete_succeeded';
  if (answer === 'deleted') return 'delete_succeeded';
  return answer === 'refused' ? '' : 'refusal_unclassified';
}
