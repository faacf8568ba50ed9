import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ProcessProof, proveProcess, sendSignal } from './end-process';

/** How a child ended. One of the fields is null. */
export interface ChildExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A child process that ends when this process ends. */
export interface GuardedChild {
  process: ChildProcess;
  proof: ProcessProof;
  exited: Promise<ChildExit>;
  /** Sends the signal, and SIGKILL after `graceMs`. Resolves when the child has ended. May be called repeatedly. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>;
}

export interface GuardOptions extends SpawnOptions {
  signalOnOrphan: NodeJS.Signals;
  /** True if the program only starts another program and passes no signals on. Signals then go to its process group. */
  isWrapper?: boolean;
  /**
   * The limit for the private memory of each process. Shared memory does not count. With a limit, the kernel ends these
   * processes first when the machine has no memory left.
   */
  memoryBytes?: number | undefined;
}

/** A script that replaces itself by a program whose processes have a limit of private memory in kB. */
const limitScript = '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; ulimit -d "$1"; shift; exec "$@"';

/**
 * Spawns a child in its own process group, so that a Ctrl-C does not reach the child and the caller decides when the
 * child ends. A shell beside the child reads a pipe of this process. When this process dies, even by kill -9, the pipe
 * ends and the shell sends `signalOnOrphan`. Linux' PR_SET_PDEATHSIG would do the same, but Node cannot set it.
 */
export async function spawnGuarded(
  command: string,
  args: readonly string[],
  options: GuardOptions,
): Promise<GuardedChild> {
  const { signalOnOrphan, isWrapper = false, memoryBytes, ...spawnOptions } = options;
  const limited =
    memoryBytes === undefined ? [] : ['/bin/sh', '-c', limitScript, 'limited', String(Math.floor(memoryBytes / 1024))];
  const [program = '', ...given] = [...limited, command, ...args];
  const child = spawn(program, given, { ...spawnOptions, detached: true });
  const exited = new Promise<ChildExit>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${command} has no pid`);
  const target = isWrapper ? -pid : pid;
  const guard = spawnGuard(target, signalOnOrphan);
  void exited.then(() => guard.kill('SIGKILL'));
  const proof = proveProcess(pid) ?? { pid, startedTicks: '' };
  return {
    process: child,
    proof,
    exited,
    stop: (signal, graceMs) => stopChild({ child, target, exited }, signal, graceMs),
  };
}

async function stopChild(
  { child, target, exited }: { child: ChildProcess; target: number; exited: Promise<ChildExit> },
  signal: NodeJS.Signals,
  graceMs: number,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  sendSignal(target, signal);
  const timer = new AbortController();
  const late = sleep(graceMs, 'late', { signal: timer.signal }).catch(() => 'ended');
  if ((await Promise.race([exited, late])) === 'late') sendSignal(target, 'SIGKILL');
  await exited;
  timer.abort();
}

function spawnGuard(target: number, signal: NodeJS.Signals): ChildProcess {
  const script = 'read -r _ignored; kill -s "$2" -- "$1" 2>/dev/null';
  const args = ['-c', script, 'drydock-guard', String(target), signal.slice('SIG'.length)];
  const guard = spawn('/bin/sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true, cwd: '/', env: {} });
  guard.on('error', () => undefined); // a machine without /bin/sh has no guard
  guard.stdin?.on('error', () => undefined);
  guard.unref();
  if (guard.stdin && 'unref' in guard.stdin && typeof guard.stdin.unref === 'function') guard.stdin.unref();
  return guard;
}
