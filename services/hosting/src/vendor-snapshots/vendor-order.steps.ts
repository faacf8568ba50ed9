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

const laterSeconds = 5;

/**
 * Postpones the step without using up an attempt, because an outage of the vendor is no failure of the work. Rethrows
 * `not_found`, and any error that does not come from the vendor.
 */
function waitOutOutage(error: unknown): never {
  if (error instanceof VendorError && error.fault !== 'not_found')
    throw retryLater({ seconds: Math.max(laterSeconds, error.retryAfterSeconds) });
  throw error;
}

/**
 * The input of every request to the vendor. After `sendBy`, by the clock of Postgres, the request is not sent any more.
 */
export const vendorOrderInput = {
  packageId: z.string(),
  scope: vendorScopeSchema,
  itemId: z.string(),
  sendBy: z.iso.datetime(),
};

type OrderInput = z.infer<z.ZodObject<typeof vendorOrderInput>>;

/** The checkpoint of the step `recheck`. The later steps read it. */
export interface OrderPlan {
  /** The name for a mailbox beside the original, without the prefix `temp-`. */
  name: string;
  /** The jobs that the timeline had before the request. Any other job may have come of the request. */
  jobsBefore: string[];
  /** The two flags are true only for a sandbox site whose name asks for a failing or a slow restore. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/**
 * Applies the rule of the request again, to the listing as it is now, and records which jobs there are. Sends nothing.
 */
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
  /** Finds a job that may have come of the request: one of its type that did not exist before. */
  findJob(): Promise<VendorJob | undefined>;
  send(): Promise<void>;
  /** The code that tells why the vendor refused. */
  explain(): Promise<ProblemCode>;
}

type Step = StepContext<OrderInput, unknown>;

/**
 * Sends the request, and resolves with the vendor's job for it. The vendor takes no idempotency key, so a note is
 * committed before the request is sent. An attempt that finds the note only looks for the job. Without a note an
 * attempt looks for a job before it sends, because the note is lost if Drydock's database was put back from a backup.
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
 * Looks for the job of an earlier attempt. If the vendor does not answer, the step goes on as if there were no such
 * job. A job without a note is rare: it needs a database that was put back.
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
 * Handles the error of a request to the vendor. Returns if the vendor may have accepted the request. Throws if the
 * vendor has certainly not accepted it.
 */
async function leaveUnsent(context: WorkContext, step: Step, order: OrderToSend, error: unknown): Promise<void> {
  if (!(error instanceof VendorError) || error.fault === 'unknown') {
    step.log.warn({ err: error }, "the vendor's answer to an order was lost; its jobs are looked at");
    return;
  }
  if (error.fault === 'refused' || error.fault === 'not_found')
    throw conclude(await order.explain(), { internal: error.message });
  // The vendor has begun nothing, so the request may be sent again, until `sendBy`.
  await context.database.transaction((tx) => takeBackNote(tx, step.workflowId));
  step.log.warn({ err: error }, 'the vendor takes no order now');
  const leftSeconds = (Date.parse(step.input.sendBy) - context.now().getTime()) / 1_000;
  throw retryLater({ seconds: Math.max(1, Math.min(error.retryAfterSeconds, leftSeconds)) });
}

/**
 * Reads the jobs until the job of the request appears. If none has appeared after `vendorWatchMs`, the vendor counts as
 * not having accepted the request. If the last read of the jobs failed, another attempt of the step looks again
 * instead.
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
  if (trouble !== undefined) waitOutOutage(trouble);
  throw conclude('vendor_not_accepted', { internal: `no job came of the order within ${vendorWatchMs} ms` });
}

/**
 * How long one attempt watches a job, which may take minutes. After this time the step frees its place in the worker,
 * and goes on later.
 */
const watchedMs = 20_000;

/**
 * Resolves when the job has finished. Ends the workflow with `failureCode` if the vendor says that the job has failed.
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
    const jobs = await timeline.listJobs(packageId, { scope, id: itemId }, step.signal).catch(waitOutOutage);
    const job = jobs.find(({ id }) => id === jobId);
    if (job === undefined) throw new Error(`the vendor no longer lists job ${jobId}`);
    if (job.status === 'finished') return;
    if (job.status === 'failed') throw conclude(failureCode, { internal: `job ${jobId} failed` });
    await wait(context.vendorPollMs, undefined, { signal: step.signal });
  }
  throw retryLater({ seconds: laterSeconds });
}
