import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { type BoxHost, startBoxHost } from '../../test/boxes';
import { cancelJob, readJob, runJob } from './job-client';
import { JobProblem, jobViewSchema } from './job-protocol';
import { jobKind } from './jobs';

/** The work of the test's jobs. It counts the running jobs and ends them on request. */
class Work {
  running = 0;
  begun = 0;
  private readonly ends: (() => void)[] = [];
  endAll = (): void => {
    for (const end of this.ends.splice(0)) end();
  };

  /** A kind of job whose work ends on request, or a moment after its signal is aborted. */
  readonly kind = jobKind({
    spec: z.strictObject({
      lock: z.string().nullable(),
      organisation: z.string().nullable(),
      fail: z.string().optional(),
    }),
    hasChannel: false,
    lock: ({ lock }) => lock,
    organisation: ({ organisation }) => organisation,
    run: async ({ spec, signal, progress }) => {
      this.begun += 1;
      this.running += 1;
      progress(0.5);
      await new Promise<void>((resolve) => {
        this.ends.push(resolve);
        signal.addEventListener('abort', () => setTimeout(resolve, 20));
      });
      this.running -= 1;
      signal.throwIfAborted();
      if (spec.fail !== undefined) throw new JobProblem(spec.fail, 'as it was told');
      return { did: 'it' };
    },
  });
}

const id = randomUUID();
let folder: string;
let work: Work;
let host: BoxHost;
let nowMs: number;
/** A kind of job that ends at once, with a large result. */
const report = jobKind({
  spec: z.unknown(),
  hasChannel: false,
  lock: () => null,
  organisation: () => null,
  run: async () => ({ text: 'x'.repeat(300_000) }),
});
const start = (): Promise<BoxHost> =>
  startBoxHost({ kinds: { work: work.kind, report }, folder, now: () => new Date(nowMs) });
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-jobs-'));
  nowMs = Date.now();
  work = new Work();
  host = await start();
});
afterEach(async () => {
  await host.close();
  await rm(folder, { recursive: true });
});

const submit = (
  jobId: string,
  {
    fence = 5,
    lock = null,
    organisation = null,
    fail,
  }: { fence?: number; lock?: string | null; organisation?: string | null; fail?: string } = {},
) =>
  host.client.ask(`PUT /jobs/${jobId}`, {
    id,
    body: { kind: 'work', fence: String(fence), spec: { lock, organisation, ...(fail !== undefined && { fail }) } },
    answer: jobViewSchema,
  });
const untilState = async (jobId: string, ...states: string[]) => {
  for (let time = 0; time < 500; time += 1) {
    const view = await readJob(host.client, id, jobId).catch(() => ({
      state: 'unknown',
      progress: 0,
      result: null,
      problem: null,
    }));
    if (states.includes(view.state)) return view;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`the job is still ${(await readJob(host.client, id, jobId)).state}`);
};

test('a repeated submission gets the same job, and another job under its id is refused', async () => {
  expect(await submit('one')).toMatchObject({ job_id: 'one', kind: 'work' });
  expect(await untilState('one', 'running')).toMatchObject({ progress: 0.5, result: null, problem: null });
  await submit('one');
  await expect(submit('one', { lock: 'other' })).rejects.toMatchObject({ code: 'job_differs' });
  work.endAll();
  expect(await untilState('one', 'succeeded')).toMatchObject({ progress: 1, result: { did: 'it' } });
  expect(await submit('one')).toMatchObject({ state: 'succeeded' });
  expect(work.begun).toBe(1);
  await expect(readJob(host.client, id, 'two')).rejects.toMatchObject({ code: 'unknown_job' });
});

test('a failure is told by its code', async () => {
  await submit('one', { fail: 'disk_on_fire' });
  await untilState('one', 'running');
  work.endAll();
  expect(await untilState('one', 'failed')).toMatchObject({
    problem: { code: 'disk_on_fire', detail: 'as it was told' },
  });
});

test('a job of a newer claim first ends the job of an older claim, and an older claim is then refused', async () => {
  await submit('old', { fence: 5 });
  await untilState('old', 'running');
  await submit('new', { fence: 6 });
  expect(await readJob(host.client, id, 'old')).toMatchObject({ state: 'cancelled', problem: { code: 'superseded' } });
  await untilState('new', 'running');
  expect(work.running).toBe(1);
  await expect(submit('late', { fence: 5 })).rejects.toMatchObject({ code: 'stale_fence' });
  await expect(cancelJob(host.client, id, 'new', { fence: '5' })).rejects.toMatchObject({ code: 'stale_fence' });
});

test('of two jobs with one lock the earlier ends first, also under one claim; other locks do not matter', async () => {
  await submit('a', { lock: 'release-1' });
  await submit('b', { lock: 'release-2' });
  await untilState('a', 'running');
  await submit('c', { lock: 'release-1' });
  expect(await readJob(host.client, id, 'a')).toMatchObject({ state: 'cancelled' });
  expect(await untilState('c', 'running')).toMatchObject({ problem: null });
  expect(await readJob(host.client, id, 'b')).toMatchObject({ state: 'running' });
});

test('a cancelled job has stopped when the cancellation is answered, and an ended job keeps its end', async () => {
  await submit('one');
  await untilState('one', 'running');
  expect(await cancelJob(host.client, id, 'one', { fence: '5' })).toMatchObject({ state: 'cancelled' });
  expect(work.running).toBe(0);
  await submit('two');
  await untilState('two', 'running');
  work.endAll();
  await untilState('two', 'succeeded');
  expect(await cancelJob(host.client, id, 'two', { fence: '5' })).toMatchObject({ state: 'succeeded' });
});

test('an abort of the caller cancels its job and throws its own reason', async () => {
  const caller = new AbortController();
  const order = { id, jobId: 'one', kind: 'work', spec: { lock: null, organisation: null }, result: z.unknown() };
  const running = runJob(host.client, { ...order, claim: { fence: '5', signal: caller.signal } });
  await untilState('one', 'running');
  const reason = new Error('the lease is lost');
  caller.abort(reason);
  await expect(running).rejects.toBe(reason);
  expect(await readJob(host.client, id, 'one')).toMatchObject({ state: 'cancelled' });
});

test('an organisation alone gets half of the places, and another one starts at once however many wait', async () => {
  for (let number = 0; number < 10; number += 1) await submit(`greedy-${number}`, { organisation: 'greedy' });
  await untilState('greedy-3', 'running');
  expect(work.running).toBe(4);
  await submit('other-1', { organisation: 'other' });
  await untilState('other-1', 'running');
  expect((await readJob(host.client, id, 'greedy-4')).state).toBe('queued');
  await cancelJob(host.client, id, 'greedy-4', { fence: '5' });
  work.endAll();
  await untilState('greedy-8', 'running');
  expect((await readJob(host.client, id, 'greedy-9')).state).toBe('queued');
  work.endAll();
  await untilState('greedy-9', 'running');
  expect(work.begun).toBe(10);
  work.endAll();
});

test('after a restart a running job is interrupted, and an ended job has its result for seven days', async () => {
  await submit('done');
  await untilState('done', 'running');
  work.endAll();
  await untilState('done', 'succeeded');
  await submit('cut');
  await untilState('cut', 'running');
  // The record from before the close is written back, so that the folder is as after a kill.
  const journal = path.join(folder, 'jobs', id);
  const before = await readFile(path.join(journal, 'cut.json'), 'utf8');
  await host.close();
  await writeFile(path.join(journal, 'cut.json'), before);
  host = await start();
  expect(await readJob(host.client, id, 'cut')).toMatchObject({ state: 'failed', problem: { code: 'interrupted' } });
  expect(await readJob(host.client, id, 'done')).toMatchObject({ state: 'succeeded', result: { did: 'it' } });
  await host.close();
  nowMs += 8 * 24 * 60 * 60 * 1_000;
  host = await start();
  await expect(readJob(host.client, id, 'done')).rejects.toMatchObject({ code: 'unknown_job' });
  expect(await readdir(journal)).toEqual([]);
});

test('the newest twenty finished jobs of a site or database are kept, in memory and on disk, also of an earlier version', async () => {
  const journal = path.join(folder, 'jobs', id);
  const names = (name: string, first: number, end: number): string[] =>
    Array.from({ length: end - first }, (_, at) => `${name}-${first + at}`);
  const isKnown = async (jobId: string): Promise<boolean> =>
    readJob(host.client, id, jobId).then(
      () => true,
      () => false,
    );
  const expectOnly = async (kept: string[], gone: string[]): Promise<void> => {
    for (const jobId of kept) expect([jobId, await isKnown(jobId)]).toEqual([jobId, true]);
    for (const jobId of gone) expect([jobId, await isKnown(jobId)]).toEqual([jobId, false]);
    await host.close();
    expect((await readdir(journal)).sort()).toEqual(kept.map((jobId) => `${jobId}.json`).sort());
  };
  for (const jobId of names('report', 0, 25)) {
    // The clock is set back by a second before each job.
    nowMs -= 1_000;
    const body = { kind: 'report', fence: '5', spec: null };
    await host.client.ask(`PUT /jobs/${jobId}`, { id, body, answer: jobViewSchema });
    await untilState(jobId, 'succeeded');
  }
  await expectOnly(names('report', 5, 25), names('report', 0, 5));

  // An agent of an earlier version has kept many more.
  const record = JSON.parse(await readFile(path.join(journal, 'report-24.json'), 'utf8'));
  const endMs = Date.parse(record.finished_at);
  for (let number = 0; number < 40; number += 1) {
    const old = { ...record, job_id: `old-${number}`, finished_at: new Date(endMs + (number - 20) * 60_000) };
    await writeFile(path.join(journal, `old-${number}.json`), JSON.stringify(old));
  }
  await writeFile(
    path.join(journal, 'cut.json'),
    JSON.stringify({ ...record, job_id: 'cut', state: 'running', result: null, finished_at: null }),
  );
  host = await start();
  expect(await readJob(host.client, id, 'cut')).toMatchObject({ state: 'failed', problem: { code: 'interrupted' } });
  await expectOnly([...names('old', 21, 40), 'cut'], [...names('old', 0, 21), ...names('report', 0, 25)]);
  host = await start();
});

test("the journal holds nothing of a job's specification", async () => {
  await submit('one', { lock: 'a-very-secret-lock' });
  await untilState('one', 'running');
  expect(await readFile(path.join(folder, 'jobs', id, 'one.json'), 'utf8')).not.toContain('secret');
});
