import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ArchiveError } from '@drydock/archive';
import { z } from 'zod';
import { JobProblem, type JobProblemView, jobProblemSchema } from './job-protocol';

/*
 * Both ends of a job in a child process. The agent writes the setup to the child's stdin as one JSON document. The
 * child writes its reports of progress and its answer to stdout, each as one line of JSON in a form of `eventSchema`.
 * Descriptor 3 is the channel, if the kind of job has one.
 */

const channelDescriptor = 3;

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
  /** The connection that the child inherits, or null. Only the child may use it afterwards. */
  channel: Socket | null;
  signal: AbortSignal;
  progress(share: number): void;
  result: z.ZodType<Result>;
}

/** The child reads hostile content and may be compromised, so the agent parses its events. */
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
  // The agent closes its own descriptor of the channel, so that the connection ends with the child. The child still has
  // its own descriptor, so the connection stays open.
  channel?.destroy();
  const kill = (): void => void child.stop('SIGKILL', 0);
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) kill();
  const { stdin, stdout, stderr } = child.process;
  if (stdin === null || stdout === null || stderr === null) throw new TypeError('a job program has three pipes');
  try {
    stdin.on('error', () => undefined); // the error means that the child has died, which its exit reports
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
 * Returns the last answer of the program, or null if it sent none. Throws `child_crashed` for a line that is not JSON
 * in one of the forms of `eventSchema`.
 */
async function readAnswer(stdout: Readable, progress: (share: number) => void): Promise<Answer | null> {
  let answer: Answer | null = null;
  for await (const line of linesOf(stdout)) {
    const event = eventSchema.safeParse(parseLine(line));
    if (!event.success) throw new JobProblem('child_crashed', 'an event of no known form');
    if ('progress' in event.data) progress(event.data.progress);
    else answer = event.data;
  }
  return answer;
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
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
  let end = '';
  stderr.setEncoding('utf8');
  stderr.on('data', (piece: string) => {
    end = `${end}${piece}`.slice(-lastWordsMax);
  });
  await once(stderr, 'close');
  return end;
}

/**
 * The least time between two reports of progress. It is short enough for people who watch, and long enough to keep the
 * pipe from filling.
 */
const progressMs = 100;

export interface ProgramContext {
  /** Opens the channel. It may be called once, and only if the kind of job has a channel. */
  openChannel(): Socket;
  progress(share: number): void;
}

/** Turns an error into the code and the detail that the job's caller gets. Returns null for an unknown error. */
export type NameProblem = (error: unknown) => JobProblemView | null;

/**
 * The main function of a program that carries out one job. It reads the setup from stdin, writes the answer to stdout,
 * and ends the process. A refusal of an archive gets the code `archive.<reason>`, and an unknown error the code
 * `internal`. The program's own codes come from `nameProblem`.
 */
export function runJobProgram(
  work: (setup: unknown, context: ProgramContext) => Promise<unknown>,
  nameProblem: NameProblem,
): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  const context: ProgramContext = {
    openChannel: () => new Socket({ fd: channelDescriptor, readable: true, writable: true }),
    progress: (share) => {
      if (performance.now() - lastMs < progressMs) return;
      lastMs = performance.now();
      void say({ progress: share });
    },
  };
  text(process.stdin)
    .then((setup) => work(JSON.parse(setup), context))
    .then(
      (result) => say({ result: result ?? null }),
      (error: unknown) => say({ problem: problemOf(error, nameProblem) }),
    )
    // The process ends without waiting for idle threads and connections.
    .finally(() => process.exit(0));
}

/**
 * Writes an event. Resolves once it is written, because an earlier exit would cut off an answer larger than the pipe.
 */
function say(event: object): Promise<void> {
  return new Promise((resolve) => process.stdout.write(`${JSON.stringify(event)}\n`, () => resolve()));
}

function problemOf(error: unknown, nameProblem: NameProblem): JobProblemView {
  if (error instanceof JobProblem) return { code: error.code, detail: error.message, facts: error.facts };
  const named = nameProblem(error);
  if (named !== null) return named;
  const detail = error instanceof Error ? error.message : String(error);
  if (error instanceof ArchiveError) return { code: `archive.${error.reason}`, detail };
  return { code: 'internal', detail };
}
