import { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { ArchiveError } from '@drydock/archive';
import { JobProblem, type JobProblemView } from './job-protocol';

/**
 * The least time between two reports of progress. It is short enough for people who watch, and long enough to keep the
 * pipe from filling.
 */
const progressMs = 100;
const channelDescriptor = 3;

export interface ProgramContext {
  /** Opens the channel. It may be called once, and only if the kind of job has a channel. */
  openChannel(): Socket;
  progress(share: number): void;
}

/**
 * Turns an error into the code and the detail that the job's caller gets. Returns null for an unknown error.
 */
export type NameProblem = (error: unknown) => JobProblemView | null;

/**
 * The body of a program that carries out one job. It reads its setup from stdin, writes its answer to stdout, and ends.
 * A refusal of an archive gets the code `archive.<reason>`, and an unknown error the code `internal`. The program's own
 * codes come from `nameProblem`.
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

/** Writes an event. Resolves once it is written: an exit before that would cut off an answer larger than the pipe. */
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
