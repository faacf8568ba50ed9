import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { z } from 'zod';
import { workerEnvironment } from './worker-environment';

const answerSchema = z.object({ error: z.string().nullable() });

/**
 * A process that packs and extracts one archive after the other, as a worker does. V8 compiles the code in the first
 * runs, so later runs are faster.
 */
export interface ArchiveProcess {
  /** Runs a command of archive-child.ts. Resolves with the seconds that it took. */
  run(command: 'pack' | 'take' | 'extract', archive: string, folder: string): Promise<number>;
}

export async function withArchiveProcess<T>(work: (archiveProcess: ArchiveProcess) => Promise<T>): Promise<T> {
  const child = fork(path.join(__dirname, 'archive-child.js'), ['serve'], {
    env: { ...process.env, ...workerEnvironment },
  });
  try {
    return await work({ run: (...order) => runIn(child, ...order) });
  } finally {
    child.kill();
  }
}

async function runIn(child: ChildProcess, command: string, archive: string, folder: string): Promise<number> {
  const started = performance.now();
  const answered = once(child, 'message', { signal: AbortSignal.timeout(600_000) });
  child.send({ command, archive, folder });
  const [answer] = await answered;
  const { error } = answerSchema.parse(answer);
  if (error !== null) throw new Error(error);
  return (performance.now() - started) / 1000;
}
