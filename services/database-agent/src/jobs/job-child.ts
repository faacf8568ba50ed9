import type { StdioOptions } from 'node:child_process';
import path from 'node:path';
import { type ChildJob, runChildJob, type StartedChild } from '@drydock/agent/jobs';
import {
  type BoxMount,
  detectIsolation,
  programInBox,
  programMounts,
  spawnGuarded,
  spawnInBox,
} from '@drydock/process';

/** The account under which job programs run if the agent is root. */
const jobAccount = 299_999;

export type Running<Result> = Omit<ChildJob<Result>, 'start' | 'setup'>;

/** The input of a job's program, and the folders that its box shows beside the program's own. */
export interface JobWork {
  setup: object;
  mounts?: readonly BoxMount[];
}

/** Runs a job program. It is always loaded from the build output, even if this file runs from its source. */
export const runJob = <Result>(
  program: string,
  { setup, mounts = [] }: JobWork,
  running: Running<Result>,
): Promise<Result> =>
  runChildJob({
    start: (stdio) => startProgram(path.resolve(__dirname, '../../dist', program), mounts, stdio),
    setup,
    ...running,
  });

/**
 * Starts the program in a box. Of Drydock's files the box shows only the packages and services with their dependencies,
 * and the folders in `mounts`. On a machine without boxes, the program starts without one.
 */
async function startProgram(file: string, mounts: readonly BoxMount[], stdio: StdioOptions): Promise<StartedChild> {
  const isolation = await detectIsolation();
  const env = { TZ: 'UTC', NODE_ENV: 'production' };
  if (isolation.kind === 'none')
    return spawnGuarded(process.execPath, [file], { env, stdio, cwd: '/', signalOnOrphan: 'SIGKILL' });
  return spawnInBox({
    isolation,
    command: [process.execPath, programInBox(file)],
    env,
    account: isolation.kind === 'accounts' ? jobAccount : null,
    mounts: [...programMounts(), ...mounts],
    workdir: '/',
    stdio,
    onOrphan: 'SIGKILL',
  });
}
