import { type StdioOptions, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { ArchiveError, type ArchiveSource } from '@drydock/archive';
import { z } from 'zod';
import { type BoxHost, startBoxHost } from '../../test/boxes';
import { type ServedArchives, serveArchives } from './archive-channel';
import { runChildJob, type StartedChild } from './child-job';
import { readJob, runJob } from './job-client';
import { jobKind } from './jobs';

/**
 * The program of a child that copies the named objects of the first archive into the written archive, all at the same
 * time. With `isLenient` it writes an empty object for a missing one. The program's result is the number of bytes.
 */
const program = `
const { runJobProgram } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/jobs/child-job.js'))});
const { remoteArchives } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/jobs/archive-channel.js'))});
runJobProgram(async ({ names, isLenient, end }, { openChannel, progress }) => {
  const archives = remoteArchives(openChannel());
  let bytes = 0;
  await Promise.all(names.map(async (name) => {
    const object = await archives.source(0).read(name).catch((error) => {
      if (isLenient && error.reason === 'missing') return Buffer.alloc(0);
      throw error;
    });
    bytes += object.length;
    progress(0.5);
    await archives.sink.write(name, object);
  }));
  if (end === 'die') process.kill(process.pid, 'SIGKILL');
  archives.end();
  return { bytes };
}, () => null);
`;

/** The program of a child whose result is a text of the given length. */
const talker = `
const { runJobProgram } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/jobs/child-job.js'))});
runJobProgram(async ({ length }) => 'x'.repeat(length), () => null);
`;

const children: StartedChild[] = [];
const start = (stdio: StdioOptions): Promise<StartedChild> => startScript(program, stdio);
async function startScript(script: string, stdio: StdioOptions): Promise<StartedChild> {
  const child = spawn(process.execPath, ['-e', script], { stdio, env: {} });
  const exited: StartedChild['exited'] = new Promise((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  );
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  children.push({ process: child, exited, stop });
  return { process: child, exited, stop };
}

const copy = jobKind({
  spec: z.strictObject({
    names: z.array(z.string()),
    isLenient: z.boolean().optional(),
    end: z.literal('die').optional(),
  }),
  hasChannel: true,
  lock: () => null,
  organisation: () => null,
  run: ({ spec, channel, signal, progress }) =>
    runChildJob({
      start,
      setup: spec,
      channel,
      signal,
      progress,
      result: z.strictObject({ bytes: z.int() }),
    }),
});

const id = randomUUID();
const nameOf = (number: number): string => `segment-${String(number).padStart(8, '0')}`;
const missing: ArchiveSource = {
  read: (name) => Promise.reject(new ArchiveError('missing', `object ${name} is missing`)),
};

let host: BoxHost;
beforeEach(async () => {
  host = await startBoxHost({ kinds: { copy } });
});
afterEach(async () => {
  await host.close();
  // The process of a job must have ended with the job.
  const left = children.splice(0).filter(({ process: child }) => child.exitCode === null && child.signalCode === null);
  if (left.length > 0) throw new Error(`${left.length} processes of jobs are left`);
});

const run = (
  archives: ServedArchives,
  spec: { names: string[]; isLenient?: boolean; end?: 'die' },
  jobId: string = randomUUID(),
  signal?: AbortSignal,
) =>
  runJob(host.client, {
    id,
    jobId,
    kind: 'copy',
    spec,
    claim: { fence: '1', ...(signal && { signal }) },
    serve: (socket) => serveArchives(socket, archives),
    result: z.strictObject({ bytes: z.int() }),
  });

test('a child reads and writes objects of the caller’s storage byte for byte, at most four at once', async () => {
  const objects = new Map(
    Array.from({ length: 24 }, (_, number) => [nameOf(number), randomBytes(1 + number * 150_000)]),
  );
  const written = new Map<string, Buffer>();
  let [atOnce, most] = [0, 0];
  const counted = async <T>(work: () => T): Promise<T> => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    await new Promise((resolve) => setTimeout(resolve, 2));
    atOnce -= 1;
    return work();
  };
  const source: ArchiveSource = { read: (name) => counted(() => Buffer.from(objects.get(name) ?? '')) };
  const sink = { write: (name: string, bytes: Buffer) => counted(() => void written.set(name, bytes)) };
  const { bytes } = await run({ sources: [source], sink }, { names: [...objects.keys()] });
  expect(bytes).toBe([...objects.values()].reduce((sum, object) => sum + object.length, 0));
  for (const [name, object] of objects) expect(written.get(name)?.equals(object)).toBe(true);
  expect(most).toBeLessThanOrEqual(4);
});

test('the caller gets the reason of a refused archive, and the own error of a failed storage', async () => {
  const sink = { write: async () => undefined };
  await expect(run({ sources: [missing], sink }, { names: [nameOf(1)] })).rejects.toMatchObject({
    code: 'archive.missing',
  });
  const reason = new Error('the bucket has gone');
  const broken: ArchiveSource = { read: () => Promise.reject(reason) };
  await expect(run({ sources: [broken], sink }, { names: [nameOf(1)] })).rejects.toBe(reason);
});

test('the caller gets the error of a storage that fails after an object was refused', async () => {
  const reason = new Error('the bucket has gone');
  const source: ArchiveSource = {
    read: (name) => (name === nameOf(1) ? missing.read(name) : Promise.reject(reason)),
  };
  const sink = { write: async () => undefined };
  const spec = { names: [nameOf(1), nameOf(2)], isLenient: true };
  await expect(run({ sources: [source], sink }, spec)).rejects.toBe(reason);
});

test('an answer that is larger than what a pipe holds arrives whole', async () => {
  const answer = await runChildJob({
    start: (stdio) => startScript(talker, stdio),
    setup: { length: 3_000_000 },
    channel: null,
    signal: new AbortController().signal,
    progress: () => undefined,
    result: z.string(),
  });
  expect(answer.length).toBe(3_000_000);
});

test('a job whose program writes something else than events has crashed', async () => {
  const job = runChildJob({
    start: (stdio) => startScript("console.log('no event')", stdio),
    setup: {},
    channel: null,
    signal: new AbortController().signal,
    progress: () => undefined,
    result: z.string(),
  });
  await expect(job).rejects.toMatchObject({ code: 'child_crashed' });
});

test('a job gets nothing but objects of archives, whatever name it asks for', async () => {
  const asked: string[] = [];
  const source: ArchiveSource = { read: async (name) => Buffer.from(String(asked.push(name))) };
  await expect(run({ sources: [source] }, { names: ['../../etc/passwd'] })).rejects.toThrow(
    'not the name of an archive object',
  );
  expect(asked).toEqual([]);
});

test('a child that dies ends its job, and a caller that goes away ends its child', async () => {
  const archives = { sources: [{ read: async () => randomBytes(10) }], sink: { write: async () => undefined } };
  await expect(run(archives, { names: [nameOf(1)], end: 'die' })).rejects.toMatchObject({ code: 'child_crashed' });
  const caller = new AbortController();
  const jobId = randomUUID();
  let read = 0;
  const hanging = {
    sources: [
      {
        read: async () => {
          read += 1;
          if (read === 1) setTimeout(() => caller.abort(new Error('gone')), 10);
          return new Promise<Buffer>(() => undefined);
        },
      },
    ],
  };
  await expect(run(hanging, { names: [nameOf(1)] }, jobId, caller.signal)).rejects.toThrow('gone');
  expect((await readJob(host.client, id, jobId)).state).toBe('cancelled');
});

test('a connection that breaks ends the job as interrupted', async () => {
  const jobId = randomUUID();
  const running = runJob(host.client, {
    id,
    jobId,
    kind: 'copy',
    spec: { names: [nameOf(1)] },
    claim: { fence: '1' },
    serve: (socket) =>
      serveArchives(socket, { sources: [{ read: async () => Promise.reject(void socket.destroy()) }] }),
    result: z.unknown(),
  });
  await expect(running).rejects.toMatchObject({ code: 'interrupted' });
});

test('no channel opens for an unknown job or for a caller with another secret', async () => {
  await expect(host.client.connect('GET /jobs/none/channel', { id })).rejects.toMatchObject({ name: 'BoxError' });
  const stranger = host.clientWith({ secret: 'ab'.repeat(32) });
  await expect(stranger.connect('GET /jobs/none/channel', { id })).rejects.toMatchObject({ name: 'BoxError' });
  await stranger.close();
});
