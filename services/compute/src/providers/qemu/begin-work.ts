import { execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ComputeError } from '../compute-provider';

const run = promisify(execFile);
/** Loaded from the build output, also when this file itself runs from its source under jest. */
const program = path.resolve(__dirname, '../../../dist/providers/qemu/run-job.js');

/**
 * Starts a process that carries out the machine's job and outlives this one. It may be called at any time: `flock`
 * holds the machine's lock while that process lives, even if it is frozen, and a second process ends at once.
 * `environment`: ours unless given.
 */
export function beginWork(machineFolder: string, environment?: Record<string, string>): void {
  let log: number;
  try {
    log = openSync(path.join(machineFolder, 'work.log'), 'a', 0o600);
  } catch {
    // The machine was deleted meanwhile: there is nothing to do.
    return;
  }
  const args = ['--nonblock', '--no-fork', path.join(machineFolder, 'lock'), process.execPath, program, machineFolder];
  const env = environment === undefined ? {} : { env: environment };
  const child = spawn('flock', args, { detached: true, stdio: ['ignore', log, log], ...env });
  // The next look at the job tries again.
  child.once('error', () => undefined);
  child.unref();
  closeSync(log);
}

let tools: Promise<void> | null = null;

/** Call it before any work is accepted. @throws ComputeError unavailable: this machine cannot run any */
export function assertTools(): Promise<void> {
  tools ??= Promise.all(['qemu-system-x86_64', 'qemu-img', 'flock'].map((tool) => run(tool, ['--version']))).then(
    () => undefined,
    (error: unknown) => {
      tools = null;
      throw new ComputeError('unavailable', 'qemu-system-x86, qemu-utils and util-linux have to be installed here', {
        cause: error,
      });
    },
  );
  return tools;
}
