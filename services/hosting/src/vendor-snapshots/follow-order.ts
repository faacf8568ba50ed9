import { setTimeout as wait } from 'node:timers/promises';
import type { ProblemCode } from '@drydock/contracts/problems';
import type { StepContext } from '@drydock/workflow/definition';
import { conclude, retryLater } from '@drydock/workflow/step-error';
import { timelineOf } from '../providers/vendor-timeline';
import type { WorkContext } from '../sites/work';
import type { OrderInput } from './recheck-order';
import { laterSeconds, sitOut } from './sit-out';

/** A worker's slot is not held for a job of minutes: after so long it is given back, and taken again later. */
const watchedMs = 20_000;

/** Resolves at the end of the vendor's job. Ends the workflow with `failureCode` when the vendor says that the job has failed. */
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
