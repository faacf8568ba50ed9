import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { JobProblem, jobProblemSchema } from './job-protocol';

const lineBytesMax = 4 * 2 ** 20;
const lastWordsMax = 4_096;

/** A child process of the agent, as the functions of packages/process start it. */
export interface StartedChild {
  process: ChildProcess;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>;
}

export interface ChildJob<Result> {
  /** Starts a program that calls `runJobProgram`, with these descriptors. */
  start(stdio: StdioOptions): Promise<StartedChild>;
  /**
   * The input of the program, including keys and addresses with passwords. It is sent on stdin, because other processes
   * can read arguments and environments.
   */
  setup: object;
  /** The connection that the child inherits. Only the child may use it afterwards. */
  channel: Socket | null;
  signal: AbortSignal;
  progress(share: number): void;
  result: z.ZodType<Result>;
}

const eventSchema = z.union([
  z.strictObject({ progress: z.number() }),
  z.strictObject({ result: z.unknown() }),
  z.strictObject({ problem: jobProblemSchema }),
]);

/**
 * Carries out a job in a child process. Resolves with the job's result. Throws the job's {@link JobProblem},
 * `child_crashed` if the child ended without an answer, or the signal's reason. The child has ended in every case.
 */
export async function runChildJob<Result>({
  start,
  setup,
  channel,
  signal,
  progress,
  result,
}: ChildJob<Result>): Promise<Result> {
  signal.throwIfAborted();
  const child = await start(['pipe', 'pipe', 'pipe', channel ?? 'ignore']);
  // The agent closes its own descriptor of the channel, so that the connection ends with the child. The caller does not
  // notice this close.
  channel?.destroy();
  const kill = (): void => void child.stop('SIGKILL', 0);
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) kill();
  const { stdin, stdout, stderr } = child.process;
  if (stdin === null || stdout === null || stderr === null) throw new TypeError('a job program has three pipes');
  try {
    stdin.on('error', () => undefined); // if the child dies before it reads its setup, its end is reported
    stdin.end(JSON.stringify(setup));
    const [answer, lastWords, exit] = await Promise.all([readAnswer(stdout, progress), readEnd(stderr), child.exited]);
    signal.throwIfAborted();
    if (answer === null) {
      throw new JobProblem(
        'child_crashed',
        `the job's process ended with ${exit.signal ?? `code ${exit.code}`}: ${lastWords}`,
      );
    }
    if ('problem' in answer) {
      const { code, detail, facts } = answer.problem;
      throw new JobProblem(code, detail, { facts });
    }
    return result.parse(answer.result);
  } finally {
    signal.removeEventListener('abort', kill);
    await child.stop('SIGKILL', 0);
  }
}

type Answer = { result: unknown } | { problem: z.infer<typeof jobProblemSchema> };

/**
 * The last answer of the program; null if it sent none. An output line that does not match `eventSchema` ends the job
 * as `child_crashed`.
 */
async function readAnswer(stdout: Readable, progress: (share: number) => void): Promise<Answer | null> {
  let answer: Answer | null = null;
  for await (const line of linesOf(stdout)) {
    const event = eventSchema.safeParse(JSON.parse(line));
    if (!event.success) throw new JobProblem('child_crashed', 'an event of no known form');
    if ('progress' in event.data) progress(event.data.progress);
    else answer = event.data;
  }
  return answer;
}

async function* linesOf(stdout: Readable): AsyncGenerator<string> {
  let rest = '';
  stdout.setEncoding('utf8');
  for await (const piece of stdout) {
    const lines = `${rest}${String(piece)}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > lineBytesMax) throw new JobProblem('child_crashed', 'a line longer than any');
    yield* lines;
  }
}

async function readEnd(stderr: Readable): Promise<string> {
  let text = '';
  stderr.setEncoding('utf8');
  stderr.on('data', (piece: string) => {
    text = `${text}${piece}`.slice(-lastWordsMax);
  });
  await once(stderr, 'close');
  return text;
}
