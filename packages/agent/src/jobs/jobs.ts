import type { Socket } from 'node:net';
import type { Log } from '@drydock/service/telemetry';
import type { z } from 'zod';
import { HostError } from '../control/control-protocol';
import { FairPlaces } from '../host/fair-places';
import { SerialQueue } from '../host/serial-queue';
import { finishedMax, hashSpec, isFinished, JobJournal, type JobRecord } from './job-journal';
import { JobProblem, type JobProblemView, type JobState, type JobView, type SubmitJob } from './job-protocol';

/** How long a job waits for its channel, in milliseconds. A living caller opens the channel at once. */
const channelMs = 30_000;
const forgetMs = 60 * 60 * 1_000;
/**
 * The most jobs that run at the same time, for all organisations together. An organisation alone gets half of the
 * places.
 */
const runningMax = 8;

export interface JobContext<Spec> {
  thingId: string;
  jobId: string;
  fence: string;
  spec: Spec;
  /**
   * Aborted by a cancellation, by a newer claim, by a later job with the same lock, and when the agent closes. The work
   * must then stop, and its promise may settle only once the work has stopped.
   */
  signal: AbortSignal;
  /**
   * The connection that the caller has opened, or null if the kind has no channel. After it is handed to a child
   * process, the agent's own descriptor must be destroyed.
   */
  channel: Socket | null;
  /** Reports the share of the work that is done, from 0 to 1. */
  progress(share: number): void;
}

export interface JobKind<Spec, Result> {
  spec: z.ZodType<Spec>;
  hasChannel: boolean;
  /**
   * The name of something that only one job may use at a time, such as the release that it writes. A later job with the
   * same name first ends the earlier job. Null if jobs of this kind may run together.
   */
  lock(spec: Spec): string | null;
  /**
   * The organisation that the work is for. Organisations share the places of jobs. With null, the site or database
   * counts as an organisation of its own.
   */
  organisation(spec: Spec): string | null;
  /**
   * Does the work. The caller receives the code of a {@link JobProblem} or a HostError. Any other error becomes
   * `internal`. The result becomes JSON.
   */
  run(context: JobContext<Spec>): Promise<Result>;
}

/** A kind of job with its types hidden, so that kinds of different types fit into one table. */
export interface AnyJobKind {
  hasChannel: boolean;
  prepare(spec: unknown): {
    lock: string | null;
    organisation: string | null;
    run(context: Omit<JobContext<unknown>, 'spec'>): Promise<unknown>;
  };
}

export const jobKind = <Spec, Result>(kind: JobKind<Spec, Result>): AnyJobKind => ({
  hasChannel: kind.hasChannel,
  prepare: (sent) => {
    const spec = kind.spec.parse(sent);
    return {
      lock: kind.lock(spec),
      organisation: kind.organisation(spec),
      run: (context) => kind.run({ ...context, spec }),
    };
  },
});

/** The reason why the agent ends a job before its work has ended by itself. */
class Ended extends Error {
  readonly state: JobState;
  readonly code: string;

  constructor(state: 'failed' | 'cancelled', code: string, detail: string) {
    super(detail);
    this.state = state;
    this.code = code;
  }
}

interface Submitted {
  isNew: boolean;
  view: JobView;
}

interface RunningJob {
  lock: string | null;
  stop: AbortController;
  done: Promise<void>;
  connect(socket: Socket): void;
  isConnected: boolean;
}

interface Job {
  record: JobRecord;
  progress: number;
  running: RunningJob | null;
}

export interface JobsOptions {
  /** The folder of the agent's own records. Jobs are recorded in its folder `jobs`. */
  folder: string;
  kinds: Readonly<Record<string, AnyJobKind>>;
  log: Log;
  now?: () => Date;
}

/** The jobs of one agent. The caller has already admitted the fence of each submission. */
export class Jobs {
  private readonly options: JobsOptions;
  private readonly now: () => Date;
  private readonly journal: JobJournal;
  /** The finished jobs of a site or database are in the order of their ends. */
  private readonly jobs = new Map<string, Job>();
  private readonly submitting = new Map<string, SerialQueue>();
  private readonly places = new FairPlaces(runningMax);
  private forgetting: NodeJS.Timeout | undefined;

  constructor(options: JobsOptions) {
    this.options = options;
    this.now = options.now ?? (() => new Date());
    this.journal = new JobJournal(options.folder, this.now);
  }

  /**
   * Reads the jobs on disk. A job that an earlier process of the agent has not finished fails as `interrupted`, so its
   * caller runs it again as a new job.
   */
  async open(): Promise<void> {
    for (const record of await this.journal.readAll()) {
      const job: Job = { record, progress: 0, running: null };
      this.jobs.set(keyOf(record.thing_id, record.job_id), job);
      if (!isFinished(record))
        await this.finish(job, 'failed', { problem: { code: 'interrupted', detail: 'the host was restarted' } });
    }
    await this.forgetOld();
    this.forgetting = setInterval(() => void this.forgetOld(), forgetMs);
    this.forgetting.unref();
  }

  /**
   * Submits a job. A repeated submission gets the same job. Throws `job_differs` if the id belongs to another
   * submission, `stale_fence` if a newer claim has a job, and a ZodError for an invalid specification.
   */
  submit(thingId: string, jobId: string, wanted: SubmitJob): Promise<Submitted> {
    const queue = this.submitting.get(thingId) ?? new SerialQueue();
    this.submitting.set(thingId, queue);
    return queue.run(() => this.submitInTurn(thingId, jobId, wanted));
  }

  private async submitInTurn(
    thingId: string,
    jobId: string,
    { kind: name, fence, workflow_id, spec }: SubmitJob,
  ): Promise<Submitted> {
    const spec_sha256 = hashSpec(spec);
    const known = this.jobs.get(keyOf(thingId, jobId));
    if (known !== undefined) {
      if (known.record.kind !== name || known.record.spec_sha256 !== spec_sha256)
        throw new HostError('job_differs', `job ${jobId} is another one`);
      return { isNew: false, view: viewOf(known) };
    }
    for (const { record } of this.jobs.values()) {
      if (record.thing_id === thingId && BigInt(record.fence) > BigInt(fence))
        throw new HostError('stale_fence', 'a newer claim has a job');
    }
    const kind = Object.hasOwn(this.options.kinds, name) ? this.options.kinds[name] : undefined;
    if (kind === undefined) throw new HostError('invalid_request', `no job of kind ${name}`);
    const prepared = kind.prepare(spec);
    await this.endOlder(thingId, fence, prepared.lock);
    const record: JobRecord = {
      thing_id: thingId,
      job_id: jobId,
      kind: name,
      fence,
      workflow_id: workflow_id ?? null,
      spec_sha256,
      state: 'queued',
      result: null,
      problem: null,
      created_at: this.now().toISOString(),
      started_at: null,
      finished_at: null,
    };
    await this.journal.write(record);
    const job: Job = { record, progress: 0, running: null };
    this.jobs.set(keyOf(thingId, jobId), job);
    this.begin(job, kind.hasChannel, prepared);
    return { isNew: true, view: viewOf(job) };
  }

  read(thingId: string, jobId: string): JobView {
    return viewOf(this.find(thingId, jobId));
  }

  /**
   * Cancels a job. Resolves when the job's work has stopped. A job that has already ended keeps its result. Throws
   * `stale_fence` if the claim is older than the job's.
   */
  async cancel(thingId: string, jobId: string, fence: string): Promise<JobView> {
    const job = this.find(thingId, jobId);
    if (BigInt(fence) < BigInt(job.record.fence))
      throw new HostError('stale_fence', `fence ${fence} is older than the job's`);
    await this.end(job, new Ended('cancelled', 'cancelled', 'by its caller'));
    return viewOf(job);
  }

  /**
   * Gives the caller's connection to the job that waits for it. From then on the job owns the connection. Throws
   * `no_channel`.
   */
  connect(thingId: string, jobId: string, socket: Socket): void {
    const { running } = this.find(thingId, jobId);
    if (running === null || running.isConnected)
      throw new HostError('no_channel', `job ${jobId} waits for no connection`);
    running.isConnected = true;
    running.connect(socket);
  }

  /**
   * Ends the unfinished jobs of this site or database that have an older claim, and the job that holds `lock`. Resolves
   * when they have stopped.
   */
  async endOlder(thingId: string, fence: string, lock: string | null = null): Promise<void> {
    const older = [...this.jobs.values()].filter(({ record, running }) => {
      if (record.thing_id !== thingId || running === null) return false;
      return BigInt(record.fence) < BigInt(fence) || (lock !== null && running.lock === lock);
    });
    await Promise.all(older.map((job) => this.end(job, new Ended('cancelled', 'superseded', `by fence ${fence}`))));
  }

  isLocked(thingId: string, lock: string): boolean {
    return [...this.jobs.values()].some(({ record, running }) => record.thing_id === thingId && running?.lock === lock);
  }

  /** Interrupts all queued and running jobs. Resolves when they have stopped. */
  async close(): Promise<void> {
    clearInterval(this.forgetting);
    const ended = [...this.jobs.values()].map((job) =>
      this.end(job, new Ended('failed', 'interrupted', 'the host is being stopped')),
    );
    await Promise.all(ended);
  }

  private find(thingId: string, jobId: string): Job {
    const job = this.jobs.get(keyOf(thingId, jobId));
    if (job === undefined) throw new HostError('unknown_job', `there is no job ${jobId}`);
    return job;
  }

  private async end({ running }: Job, reason: Ended): Promise<void> {
    if (running === null) return;
    running.stop.abort(reason);
    await running.done;
  }

  private begin(job: Job, hasChannel: boolean, prepared: ReturnType<AnyJobKind['prepare']>): void {
    const stop = new AbortController();
    let connect: (socket: Socket) => void = () => undefined;
    const connected = new Promise<Socket>((resolve) => {
      connect = resolve;
    });
    const channel = hasChannel ? connected : Promise.resolve(null);
    const running: RunningJob = {
      lock: prepared.lock,
      stop,
      done: Promise.resolve(),
      connect,
      isConnected: !hasChannel,
    };
    job.running = running;
    running.done = this.carryOut(job, channel, stop.signal, prepared).finally(() => {
      job.running = null;
      void connected.then((socket) => socket.destroy());
    });
  }

  /** Carries out a job to its end. Never rejects. */
  private async carryOut(
    job: Job,
    connection: Promise<Socket | null>,
    signal: AbortSignal,
    prepared: ReturnType<AnyJobKind['prepare']>,
  ): Promise<void> {
    const { thing_id: thingId, job_id: jobId, fence } = job.record;
    const progress = (share: number): void => {
      job.progress = Math.max(job.progress, Math.min(1, share));
    };
    try {
      const channel = await withinMs(connection, channelMs, signal);
      const leave = await this.places.take(prepared.organisation ?? thingId, signal);
      try {
        const record: JobRecord = { ...job.record, state: 'running', started_at: this.now().toISOString() };
        await this.journal.write(record);
        job.record = record;
        signal.throwIfAborted();
        const result = await prepared.run({ thingId, jobId, fence, signal, channel, progress });
        await this.finish(job, 'succeeded', { result: result ?? null });
      } finally {
        leave();
      }
    } catch (error) {
      const ended: unknown = signal.aborted ? signal.reason : error;
      const { state, problem } = this.problemOf(ended, job.record);
      await this.finish(job, state, { problem }).catch((failure: unknown) => {
        // The job has ended, but its record on disk is unfinished. The next start of the agent records it as
        // interrupted.
        this.options.log.error({ err: failure, job_id: jobId }, 'the end of a job could not be written');
      });
    }
  }

  private problemOf(
    error: unknown,
    { kind, job_id }: JobRecord,
  ): { state: 'failed' | 'cancelled'; problem: JobProblemView } {
    if (error instanceof Ended) {
      return {
        state: error.state === 'cancelled' ? 'cancelled' : 'failed',
        problem: { code: error.code, detail: error.message },
      };
    }
    if (error instanceof JobProblem || error instanceof HostError) {
      const { code, message: detail } = error;
      this.options.log.info({ kind, job_id, code, detail }, 'a job failed');
      return { state: 'failed', problem: { code, detail, ...(error instanceof JobProblem && { facts: error.facts }) } };
    }
    this.options.log.error({ err: error, kind, job_id }, 'a job failed');
    return { state: 'failed', problem: { code: 'internal', detail: 'see the log' } };
  }

  private async finish(job: Job, state: JobState, end: Partial<Pick<JobRecord, 'result' | 'problem'>>): Promise<void> {
    job.record = { ...job.record, ...end, state, finished_at: this.now().toISOString() };
    if (state === 'succeeded') job.progress = 1;
    // Older results are removed before the new one is written, so that they make room on a full disk.
    await this.forgetSurplus(job);
    await this.journal.write(job.record);
  }

  /** Forgets all finished jobs of the site or database of `ended` except the newest {@link finishedMax}. */
  private async forgetSurplus(ended: Job): Promise<void> {
    const { thing_id: thingId, job_id: jobId } = ended.record;
    // The order of the map tells which jobs are the oldest, because the machine's clock may be set back.
    this.jobs.delete(keyOf(thingId, jobId));
    this.jobs.set(keyOf(thingId, jobId), ended);
    const finished = [...this.jobs.values()].filter(({ record }) => record.thing_id === thingId && isFinished(record));
    for (const { record } of finished.slice(0, -finishedMax)) await this.forget(record);
  }

  private async forgetOld(): Promise<void> {
    for (const { record } of this.jobs.values()) if (this.journal.isDue(record)) await this.forget(record);
  }

  private async forget(record: JobRecord): Promise<void> {
    this.jobs.delete(keyOf(record.thing_id, record.job_id));
    await this.journal
      .forget(record)
      .catch((error: unknown) => this.options.log.warn({ err: error }, 'an old job could not be forgotten'));
  }
}

const keyOf = (thingId: string, jobId: string): string => `${thingId}/${jobId}`;

function viewOf({ record, progress }: Job): JobView {
  const { job_id, kind, state, result, problem, created_at, started_at, finished_at } = record;
  return { job_id, kind, state, progress, result, problem, created_at, started_at, finished_at };
}

function withinMs<T>(awaited: Promise<T>, ms: number, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Ended('failed', 'interrupted', 'nobody opened the channel')), ms);
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    awaited.then(resolve, reject).finally(() => {
      clearTimeout(late);
      signal.removeEventListener('abort', abort);
    });
  });
}
