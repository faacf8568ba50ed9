import { setTimeout as wait } from 'node:timers/promises';
import type { ProblemCode } from '@drydock/contracts/problems';
import type { StepContext } from '@drydock/workflow/definition';
import { conclude, retryLater } from '@drydock/workflow/step-error';
import { VendorError } from '../providers/vendor-timeline';
import type { VendorJob } from '../providers/vendor-timeline.types';
import type { WorkContext } from '../sites/work';
import type { OrderInput } from './recheck-order';
import { sitOut } from './sit-out';
import { noteSending, takeBackNote } from './vendor-order.store';

export interface OrderToSend {
  /** The timeline's jobs that came after ours was decided on, and are of its kind. */
  findJob(): Promise<VendorJob | undefined>;
  send(): Promise<void>;
  /** Why the vendor said no. */
  explain(): Promise<ProblemCode>;
}

type Step = StepContext<OrderInput, unknown>;

/**
 * Sends the order once in the life of its workflow, and resolves with the job that came of it. The vendor takes no idempotency key: a note is
 * committed before the order goes out, and whoever finds the note looks for the job instead of sending again.
 */
export async function sendOrder(context: WorkContext, step: Step, order: OrderToSend): Promise<{ jobId: string }> {
  const { pool } = context.database;
  const note = await noteSending(pool, step.workflowId, new Date(step.input.sendBy));
  if (note === 'late') throw conclude('start_by_passed', { internal: 'the request no longer waits: nothing is sent' });
  if (note === 'fresh') {
    try {
      await order.send();
    } catch (error) {
      await leaveUnsent(context, step, order, error);
    }
  }
  return { jobId: (await watchForJob(context, step, order)).id };
}

/** Returns when the order may have been taken all the same; throws when it certainly was not. */
async function leaveUnsent(context: WorkContext, step: Step, order: OrderToSend, error: unknown): Promise<void> {
  if (!(error instanceof VendorError) || error.fault === 'unknown') {
    step.log.warn({ err: error }, "the vendor's answer to an order was lost; its jobs are looked at");
    return;
  }
  if (error.fault === 'refused' || error.fault === 'not_found') throw conclude(await order.explain(), { internal: error.message });
  // Nothing was begun, and there may be time to try again: as often as it takes, for `sendBy` is the end of it.
  await takeBackNote(context.database.pool, step.workflowId);
  step.log.warn({ err: error }, 'the vendor takes no order now');
  const leftSeconds = (Date.parse(step.input.sendBy) - context.now().getTime()) / 1_000;
  throw retryLater({ seconds: Math.max(1, Math.min(error.retryAfterSeconds, leftSeconds)) });
}

/** Looks until the job is seen. One that never comes was never taken on; a vendor that cannot be asked leaves that open, for another attempt. */
async function watchForJob({ vendorWatchMs, vendorPollMs }: WorkContext, step: Step, { findJob }: OrderToSend): Promise<VendorJob> {
  const endsAt = performance.now() + vendorWatchMs;
  let trouble: unknown;
  do {
    try {
      trouble = undefined;
      const job = await findJob();
      if (job !== undefined) return job;
    } catch (error) {
      step.signal.throwIfAborted();
      trouble = error;
    }
    await wait(vendorPollMs, undefined, { signal: step.signal });
  } while (performance.now() < endsAt);
  if (trouble !== undefined) sitOut(trouble);
  throw conclude('vendor_not_accepted', { internal: `no job came of the order within ${vendorWatchMs} ms` });
}
