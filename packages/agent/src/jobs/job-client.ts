import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { timeLimit } from '@drydock/process';
import { withoutSpans } from '@drydock/service/telemetry';
import type { z } from 'zod';
import type { Claim, ControlClient } from '../control/control-client';
import type { ServedChannel } from './archive-channel';
import { JobProblem, type JobProblemView, type JobView, jobViewSchema } from './job-protocol';

/**
 * The pauses between two reads of a running job's progress. A job without a channel is read often at first, because
 * many such jobs end quickly.
 */
const watchMs = { first: 20, most: 400 };
/** The pause once the channel has ended, because the job then ends within moments. */
const endingMs = 10;
const cancelMs = 20_000;

export interface WantedJob<Result> {
  /** The id of the site or database that the job works on. */
  id: string;
  jobId: string;
  kind: string;
  spec: object;
  claim: Claim;
  result: z.ZodType<Result>;
  /** Answers the requests that the job sends on its channel, for a kind of job that has one. */
  serve?: (socket: Socket) => ServedChannel;
  onProgress?: (share: number) => void;
}

/**
 * Submits a job and waits until it has ended. Resolves with its result. Rejects with the job's {@link JobProblem}, with
 * the agent's refusal, or with the storage's own error if the served storage has failed. If the claim's signal is
 * aborted, the job is cancelled and the call rejects with the signal's reason.
 */
export async function runJob<Result>(client: ControlClient, wanted: WantedJob<Result>): Promise<Result> {
  const { id, jobId, claim } = wanted;
  const { signal } = claim;
  let socket: Socket | null = null;
  let served: ServedChannel | null = null;
  try {
    await submit(client, wanted);
    if (wanted.serve !== undefined) {
      socket = await client.connect(`GET /jobs/${jobId}/channel`, { id, signal });
      served = wanted.serve(socket);
    }
    const view = await watch(client, wanted, served);
    return resultOf(view, wanted.result, served);
  } catch (error) {
    socket?.destroy();
    // A cancellation does not change a job that has already ended. If the cancellation does not arrive, a job with a
    // channel ends because its channel is broken. A job without a channel ends at the latest when a newer claim submits
    // a job.
    if (!(error instanceof JobProblem)) await cancelJob(client, id, jobId, claim).catch(() => undefined);
    throw error;
  } finally {
    await served?.ended.catch(() => undefined);
  }
}

async function submit<Result>(
  client: ControlClient,
  { id, jobId, kind, spec, claim }: WantedJob<Result>,
): Promise<void> {
  const body = { kind, spec, fence: claim.fence, workflow_id: claim.workflowId };
  await client.ask(`PUT /jobs/${jobId}`, { id, body, signal: claim.signal, answer: jobViewSchema });
}

export const readJob = (client: ControlClient, id: string, jobId: string, signal?: AbortSignal): Promise<JobView> =>
  client.ask(`GET /jobs/${jobId}`, { id, signal, answer: jobViewSchema });

/** Cancels a job. Resolves when the job has stopped. The caller's signal does not interrupt the cancellation. */
export const cancelJob = (
  client: ControlClient,
  id: string,
  jobId: string,
  { fence, workflowId }: Claim,
): Promise<JobView> =>
  client.ask(`DELETE /jobs/${jobId}`, {
    id,
    body: { fence, workflow_id: workflowId },
    signal: timeLimit(cancelMs),
    answer: jobViewSchema,
  });

async function watch<Result>(
  client: ControlClient,
  wanted: WantedJob<Result>,
  served: ServedChannel | null,
): Promise<JobView> {
  const { signal } = wanted.claim;
  let isEnding = false;
  const ending = served?.ended
    .catch(() => undefined)
    .then(() => {
      isEnding = true;
    });
  for (let pauseMs = served === null ? watchMs.first : watchMs.most; ; pauseMs = Math.min(pauseMs * 2, watchMs.most)) {
    // The rejection of `wait` is ignored, because the signal's own reason is thrown below.
    const pause = wait(isEnding ? endingMs : pauseMs, undefined, signal === undefined ? {} : { signal }).catch(
      () => undefined,
    );
    await (isEnding || ending === undefined ? pause : Promise.race([pause, ending]));
    signal?.throwIfAborted();
    const view = await withoutSpans(() => readJob(client, wanted.id, wanted.jobId, signal));
    wanted.onProgress?.(view.progress);
    if (view.state !== 'queued' && view.state !== 'running') return view;
  }
}

function resultOf<Result>(view: JobView, result: z.ZodType<Result>, served: ServedChannel | null): Result {
  if (view.state === 'succeeded') return result.parse(view.result);
  const failure = served?.failure();
  if (view.problem?.code === 'storage_failed' && failure !== undefined) throw failure;
  const { code, detail, facts }: JobProblemView = view.problem ?? {
    code: view.state,
    detail: `the job is ${view.state}`,
  };
  throw new JobProblem(code, detail, { facts });
}
