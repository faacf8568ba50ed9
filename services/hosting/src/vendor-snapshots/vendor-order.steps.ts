import { setTimeout as wait } from 'node:timers/promises';
import { vendorScopeSchema } from '@drydock/contracts/hosting/vendor-snapshots';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { conclude, fail, type Refusal, retryLater, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import type { WorkContext } from '../context/context';
import { timelineOf, VendorError } from '../providers/vendor-timeline';
import type { VendorJob, VendorListing } from '../providers/vendor-timeline.types';
import { assertStillAllowed } from '../sites/definite-failure';
import { sandboxBehaviour } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { noteSending, takeBackNote } from './vendor-order.store';
import { nameBeside } from './vendor-snapshot.rules';

/** The pause before an order or a job is checked again, in seconds. */
const laterSeconds = 5;

/**
 * Postpones the step after an error of the vendor, without using up an attempt, because an outage is no failure of the
 * work. Throws the VendorError `not_found` and every other error unchanged.
 */
function sitOut(error: unknown): never {
  if (error instanceof VendorError && error.fault !== 'not_found')
    throw retryLater({ seconds: Math.max(laterSeconds, error.retryAfterSeconds) });
  throw error;
}

/** The fields of every order to the vendor. After `sendBy`, by Postgres' clock, the order is not sent. */
export const vendorOrderInput = {
  packageId: z.string(),
  scope: vendorScopeSchema,
  itemId: z.string(),
  sendBy: z.iso.datetime(),
};

type OrderInput = z.infer<z.ZodObject<typeof vendorOrderInput>>;

/** The checkpoint of the first step, which the later steps read. */
export interface OrderPlan {
  /** The basis of the name of a mailbox that is restored beside the original. */
  name: string;
  /** The ids of the jobs that existed before this order. Any other job may belong to the order. */
  jobsBefore: string[];
  /** True only for sandbox sites whose name asks for a failing or a slow restore. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/** Applies the rule of the request to the vendor's current listing, and records the jobs that exist. Sends nothing. */
export async function recheckOrder(
  context: WorkContext,
  step: StepContext<OrderInput, unknown>,
  rule: (listing: VendorListing) => Refusal | null,
): Promise<OrderPlan> {
  const { packageId, scope, itemId } = step.input;
  const site = await findSite(context.database.pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const timeline = timelineOf(context.vendorTimelines, step.mode);
  const listing = await timeline.read(packageId, step.signal);
  if (listing === null) throw fail('no_vendor_package', { internal: `the vendor has no package ${packageId}` });
  assertStillAllowed(rule(listing));
  const jobs = await timeline.listJobs(packageId, { scope, id: itemId }, step.signal);
  const { fails, slows } = sandboxBehaviour(site, 'fail_restore');
  return {
    name: nameBeside(listing, itemId),
    jobsBefore: jobs.map(({ id }) => id),
    failsOnPurpose: fails,
    slowsOnPurpose: slows,
  };
}

export interface OrderToSend {
  /** Finds a job of the timeline that has this order's type and did not exist before the order. */
  findJob(): Promise<VendorJob | undefined>;
  send(): Promise<void>;
  /** Resolves with the code that says why the vendor refused the order. */
  explain(): Promise<ProblemCode>;
}

type Step = StepContext<OrderInput, unknown>;

/**
 * Sends the order once in the life of its workflow, and resolves with the job that the order has started. The vendor
 * takes no idempotency key. So a note is committed before the order is sent. An attempt that finds the note does not
 * send the order again, but looks for its job. The vendor is asked even without a note, because a restored older
 * database of Drydock may have lost the note.
 */
export async function sendOrder(context: WorkContext, step: Step, order: OrderToSend): Promise<{ jobId: string }> {
  const note = await context.database.transaction((tx) =>
    noteSending(tx, step.workflowId, new Date(step.input.sendBy)),
  );
  const sentBefore = note === 'sent' ? undefined : await lookForJob(step, order);
  if (sentBefore !== undefined) return { jobId: sentBefore.id };
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

/**
 * Looks for the job of an earlier attempt. If the vendor does not answer, the step continues, because such a job rarely
 * exists.
 */
async function lookForJob({ signal, log }: Step, { findJob }: OrderToSend): Promise<VendorJob | undefined> {
  try {
    return await findJob();
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ err: error }, "the vendor's jobs cannot be looked at before an order");
    return undefined;
  }
}

/**
 * Handles the error of a sent order. Returns if the vendor may have taken the order. Throws if the vendor has certainly
 * not taken the order.
 */
async function leaveUnsent(context: WorkContext, step: Step, order: OrderToSend, error: unknown): Promise<void> {
  if (!(error instanceof VendorError) || error.fault === 'unknown') {
    step.log.warn({ err: error }, "the vendor's answer to an order was lost; its jobs are looked at");
    return;
  }
  if (error.fault === 'refused' || error.fault === 'not_found')
    throw conclude(await order.explain(), { internal: error.message });
  // The vendor has begun nothing, so the order may be sent again. `sendBy` limits the attempts.
  await context.database.transaction((tx) => takeBackNote(tx, step.workflowId));
  step.log.warn({ err: error }, 'the vendor takes no order now');
  const leftSeconds = (Date.parse(step.input.sendBy) - context.now().getTime()) / 1_000;
  throw retryLater({ seconds: Math.max(1, Math.min(error.retryAfterSeconds, leftSeconds)) });
}

/**
 * Reads the vendor's jobs until the order's job appears. If it never appears, the vendor did not take the order. If the
 * vendor does not answer, another attempt of the step looks again.
 */
async function watchForJob(
  { vendorWatchMs, vendorPollMs }: WorkContext,
  step: Step,
  { findJob }: OrderToSend,
): Promise<VendorJob> {
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

/**
 * How long a job is watched before the step gives its worker's slot back. A job takes minutes. The step takes a slot
 * again later.
 */
const watchedMs = 20_000;

/**
 * Resolves at the end of the vendor's job. Ends the workflow with `failureCode` when the vendor says that the job has
 * failed.
 */
export async function followOrder(
  context: WorkContext,
  step: StepContext<OrderInput, unknown>,
  jobId: string,
  failureCode: ProblemCode,
): Promise<void> {
  const { packageId, scope, itemId } = step.input;
  const timeline = timelineOf(context.vendorTimelines, step.mode);
  const endsAt = performance.now() + watchedMs;
  while (performance.now() < endsAt) {
    const jobs = await timeline.listJobs(packageId, { scope, id: itemId }, step.signal).catch(sitOut);
    const job = jobs.find(({ id }) => id === jobId);
    if (job === undefined) throw new Error(`the vendor no longer lists job ${jobId}`);
    if (job.status === 'finished') return;
    if (job.status === 'failed') throw conclude(failureCode, { internal: `job ${jobId} failed` });
    await wait(context.vendorPollMs, undefined, { signal: step.signal });
  }
  throw retryLater({ seconds: laterSeconds });
}
