import { type ChildProcess, type IOType, type StdioOptions, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BoxListeners,
  boxScript,
  exitOf,
  handOverFd,
  handOverSource,
  lastNamespaceScript,
  takeListeners,
} from './box-script';
import { isSameProcess, type ProcessProof, proveProcess, sendSignal } from './end-process';
import type { ChildExit, GuardedChild } from './guarded-child';
import type { Isolation } from './isolation';

/** A file or folder of the machine that a box shows. `to` is its path in the box. */
export interface BoxMount {
  from: string;
  to: string;
  writable: boolean;
}

/** Limits of each process in the box, except for `processes`, which limits the account, and `tmpBytes`. */
export interface BoxLimits {
  /**
   * Private writable memory. Address space does not count, because WebAssembly reserves gigabytes without using them.
   * Node's area for code does not count either.
   */
  memoryBytes?: number;
  /** Processes and threads. Node alone has about a dozen threads. */
  processes?: number;
  openFiles?: number;
  fileBytes?: number;
  /** Size of the box's /tmp, which is in memory. Default: 64 MB. */
  tmpBytes?: number;
}

/**
 * `dac_override` allows reading, writing and removing files despite their modes. `fowner` allows acting as a file's
 * owner, also in sticky folders.
 */
export type BoxRight = 'dac_override' | 'fowner';

export interface BoxOptions {
  isolation: Isolation;
  /**
   * Program and arguments, with paths in the box. Every user of the machine can read them, so they must not contain
   * secrets.
   */
  command: readonly string[];
  /** The command's whole environment. The command inherits no variable. */
  env: Readonly<Record<string, string>>;
  /**
   * The uid and gid of the box's processes if this process is root, otherwise null. With null they run under this
   * process's own account.
   */
  account: number | null;
  /** Root's rights over files in the box, for a program of Drydock. These rights need root. Default: none. */
  rights?: readonly BoxRight[];
  /**
   * Paths that the box shows. Besides these it has read-only system folders, four devices, its own /proc and /tmp, and
   * Node.
   */
  mounts: readonly BoxMount[];
  workdir: string;
  limits?: BoxLimits;
  /**
   * Gives the box a network with only a loopback, and listeners on these ports (`BoxedChild.listeners`). By default the
   * box shares the machine's network.
   */
  ownNetwork?: { ports: readonly number[] };
  /**
   * Keeps the command from creating user namespaces, which would expose more of the kernel. If this process is root,
   * files of other accounts then appear as files of `nobody`.
   */
  isLastNamespace?: boolean;
  /**
   * At most eight descriptors, as for `spawn`. The command has no other descriptors. If the command closes a
   * descriptor, the other end notices this only when the command ends, because the script keeps the descriptor open.
   */
  stdio: StdioOptions;
  /** The signal for all processes of the box when this process ends for any reason. */
  onOrphan: 'SIGKILL';
}

export interface BoxedChild extends GuardedChild {
  /**
   * The path of the box's root, `/proc/<pid>/root` of its first process. The command cannot change this root, but it
   * can put links into `/tmp` and writable mounts. So open only a file directly in one of these folders, and follow no
   * link.
   */
  root: string;
  /** The listeners in the box's network. They close when the box ends. */
  listeners: BoxListeners;
}

export class BoxError extends Error {
  override readonly name = 'BoxError';
}

/**
 * The most descriptors that a caller may pass. The script can use only descriptors with one digit, and needs two of
 * them itself.
 */
const stdioMax = 8;
const controlFd = 9;
const setUpMs = 15_000;
const tmpBytesUsual = 64 * 2 ** 20;
const toolFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/**
 * Matches variables that would influence the tools which create the box. These tools run outside of the box with all
 * rights.
 */
const forbiddenEnv = /^(?:_box_.*|LD_.*|BASH.*|ENV|SHELLOPTS|IFS|PS4|LIBMOUNT_.*|GLIBC_TUNABLES|GCONV_PATH)$/;
/** Folders of every box. No mount can replace them. */
const ownFolders = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/dev',
  '/proc',
  '/tmp',
  '/sys',
];

/**
 * Starts a program in a box. {@link BoxOptions} tells what the program can see. `proof` has the command's pid outside
 * of the box, and `stop` signals the command. When the command ends, all processes of the box end, and then `exited`
 * resolves. A command that exits with 128 and the number of a signal is reported as ended by that signal. @throws
 * BoxError
 */
export async function spawnInBox(options: BoxOptions): Promise<BoxedChild> {
  const child = startScript(options);
  const exited = new Promise<ChildExit>((resolve) =>
    child.once('exit', (code, signal) => resolve(exitOf(code, signal))),
  );
  const control = controlOf(child);
  control.on('error', () => undefined); // the error means that the script has ended, which `exited` reports
  const taking = takeListeners(child, options.ownNetwork?.ports ?? []);
  try {
    await readReady(child, control);
    const listeners = await taking;
    const init = onlyChildOf(child.pid ?? 0);
    const proof = proveProcess(onlyChildOf(init));
    if (proof === null) throw new BoxError('the first process of the box has gone');
    const target: Target = { wrapper: child, command: proof, exited };
    // The command is started last, so that the caller can add listeners before it ends.
    control.write('go\n', () => control.destroy());
    const stop = (signal: NodeJS.Signals, graceMs: number): Promise<void> => stopBox(target, signal, graceMs);
    return { process: child, proof, exited, stop, root: `/proc/${init}/root`, listeners };
  } catch (error) {
    child.kill('SIGKILL');
    control.destroy();
    throw error;
  }
}

/** Node makes a stream for each "pipe", but its types know only five descriptors. */
function controlOf({ stdio }: { stdio: readonly unknown[] }): Duplex {
  const control = stdio[controlFd];
  if (!(control instanceof Duplex)) throw new BoxError('the box has no control descriptor');
  return control;
}

interface Target {
  wrapper: ChildProcess;
  command: ProcessProof;
  exited: Promise<ChildExit>;
}

/**
 * Sends a signal to the command, and SIGKILL after `graceMs`. When the command ends, the box's init and all other
 * processes of the box end.
 */
async function stopBox({ wrapper, command, exited }: Target, signal: NodeJS.Signals, graceMs: number): Promise<void> {
  const send = (name: NodeJS.Signals): void => {
    if (isSameProcess(command)) sendSignal(command.pid, name);
  };
  if (wrapper.exitCode !== null || wrapper.signalCode !== null) return;
  send(signal);
  const timer = new AbortController();
  const late = sleep(graceMs, 'late', { signal: timer.signal }).catch(() => 'ended');
  if ((await Promise.race([exited, late])) === 'late') send('SIGKILL');
  await exited;
  timer.abort();
}

function startScript(options: BoxOptions): ChildProcess {
  checkOptions(options);
  const [program = '', ...args] = commandLineOf(options);
  const stdio = stdioOf(options);
  // The box has its own session. So a Ctrl-C in the terminal does not reach the box, and the box has no controlling
  // terminal.
  return spawn(program, args, { cwd: '/', env: { ...options.env }, stdio, detached: true });
}

/**
 * Returns the command line: setpriv (ends with this process) → unshare → the script → [unshare, back to the caller's
 * uid] → prlimit → setpriv (only `rights`) → the command.
 */
function commandLineOf(options: BoxOptions): string[] {
  const {
    isolation,
    account,
    rights = [],
    mounts,
    workdir,
    limits = {},
    ownNetwork,
    isLastNamespace = false,
    command,
  } = options;
  const isRoot = isolation.kind === 'accounts';
  const user = os.userInfo();
  const [uid, gid] = isRoot ? [account ?? 0, account ?? 0] : [user.uid, user.gid];
  const shown = [...nodeMount(), ...mounts];
  const kept = ['-all', ...rights.map((right) => `+${right}`)].join(',');
  return [
    ...[
      toolPath('setpriv'),
      '--pdeathsig',
      'KILL',
      '--',
      toolPath('unshare'),
      ...(isRoot ? [] : ['--user', '--map-root-user']),
    ],
    ...(ownNetwork === undefined ? [] : ['--net']),
    ...['--mount', '--pid', '--ipc', '--fork', '--kill-child', '--propagation', 'private', '--'],
    ...[
      '/bin/sh',
      '-c',
      boxScript,
      'drydock-box',
      String(limits.tmpBytes ?? tmpBytesUsual),
      String(uid),
      String(gid),
      workdir,
    ],
    // Without root, the box may create one user namespace: that in which the `unshare` below runs the command.
    ...[isRoot || !isLastNamespace ? '' : '1', String(givenStdio(options).length)],
    ...[process.execPath, handOverSource, (ownNetwork?.ports ?? []).join(' ')],
    ...[String(shown.length), ...shown.flatMap(({ from, to, writable }) => [from, to, writable ? 'rw' : 'ro'])],
    // Without root, this `unshare` changes root back to the caller's account, because Postgres and other programs
    // refuse to run as root. It also removes the last right over the box's namespaces.
    ...(isRoot ? [] : [toolPath('unshare'), '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--keep-caps', '--']),
    ...[toolPath('prlimit'), '--core=0', ...limitOptions(limits, command), '--', toolPath('setpriv')],
    ...(isRoot ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : []),
    ...(isRoot && isLastNamespace
      ? ['--', '/bin/sh', '-c', lastNamespaceScript, 'sh', toolPath('unshare'), String(uid), toolPath('setpriv')]
      : []),
    ...['--no-new-privs', `--bounding-set=${kept}`, `--inh-caps=${kept}`, `--ambient-caps=${kept}`, '--', ...command],
  ];
}

function limitOptions(
  { memoryBytes, processes, openFiles, fileBytes }: BoxLimits,
  command: readonly string[],
): string[] {
  const data =
    memoryBytes === undefined ? undefined : memoryBytes + (command.includes(process.execPath) ? nodeCodeBytes() : 0);
  const given = { data, nproc: processes, nofile: openFiles, fsize: fileBytes };
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

let codeBytes: number | undefined;

/**
 * Returns the size of Node's area for compiled code. Node 24 maps half a gigabyte writable and hardly uses it, but the
 * kernel counts it as private memory. The box runs the same Node, so this process's own map shows the area. If this
 * process has worker threads, it has several such areas, so the sum is limited to half a gigabyte.
 */
function nodeCodeBytes(): number {
  codeBytes ??= [...fs.readFileSync('/proc/self/maps', 'latin1').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rwxp/gm)]
    .map(([, from = '0', to = '0']) => Number.parseInt(to, 16) - Number.parseInt(from, 16))
    .reduce((sum, bytes) => Math.min(sum + bytes, 2 ** 29), 0);
  return codeBytes;
}

/** Mounts Node's program at its own path if it is not in /usr. */
function nodeMount(): BoxMount[] {
  const file = fs.realpathSync(process.execPath);
  return file.startsWith('/usr/') ? [] : [{ from: file, to: file, writable: false }];
}

function toolPath(name: string): string {
  const file = toolFolders.map((folder) => path.join(folder, name)).find((candidate) => fs.existsSync(candidate));
  if (file === undefined) throw new BoxError(`${name} of util-linux is not installed`);
  return file;
}

type Descriptors = Exclude<StdioOptions, string>;

const givenStdio = ({ stdio }: BoxOptions): Descriptors => (typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio);

function stdioOf(options: BoxOptions): StdioOptions {
  const given = givenStdio(options);
  if (given.length > stdioMax) throw new BoxError(`a box takes ${stdioMax} descriptors at most`);
  const padding = Array.from({ length: handOverFd - given.length }, (): IOType => 'ignore');
  const own: Descriptors = [...given, ...padding, options.ownNetwork === undefined ? 'ignore' : 'ipc', 'pipe'];
  return [...own, ...overInherited(own.length)];
}

let inherited: readonly number[] | undefined;
let nothingFd: number | undefined;

/**
 * Hides inherited open descriptors from a child. Node closes only descriptors that it opened, and a shell closes only
 * descriptors with one digit. So each inherited descriptor from `first` on is replaced by /dev/null.
 */
function overInherited(first: number): Descriptors {
  inherited ??= fs.readdirSync('/proc/self/fd').map(Number).filter(isPassedOn);
  nothingFd ??= fs.openSync('/dev/null', 'r');
  const last = Math.max(first - 1, ...inherited);
  return Array.from({ length: last - first + 1 }, (_, n) =>
    inherited?.includes(first + n) === true ? nothingFd : 'ignore',
  );
}

/** Linux's O_CLOEXEC. `/proc/self/fdinfo` shows the flags in octal. */
const closedOnExec = 0o2_000_000;

function isPassedOn(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '';
    return (Number.parseInt(flags, 8) & closedOnExec) === 0;
  } catch {
    // The descriptor is closed by now: `readdirSync` had opened it to list the folder.
    return false;
  }
}

function checkOptions({ isolation, account, rights = [], env, mounts, workdir, command }: BoxOptions): void {
  if (isolation.kind === 'none') throw new BoxError(`no box can be made here: ${isolation.reason}`);
  if (isolation.kind === 'accounts' && (account === null || !Number.isInteger(account) || account < 1)) {
    throw new BoxError('as root a box needs an account');
  }
  if (isolation.kind !== 'accounts' && rights.length > 0) throw new BoxError('only root has rights to give to a box');
  if (command.length === 0) throw new BoxError('a box needs a command');
  for (const name of Object.keys(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || forbiddenEnv.test(name))
      throw new BoxError(`no box takes a variable called ${name}`);
  }
  for (const given of [workdir, ...mounts.flatMap(({ from, to }) => [from, to])]) {
    if (!path.isAbsolute(given) || path.normalize(given) !== given)
      throw new BoxError(`${given} is no plain absolute path`);
  }
  const shown = mounts.map(({ to }) => to);
  for (const [at, to] of shown.entries()) {
    // A mount point below another mount point is refused, because the lower one would have to be created in a folder of
    // a customer.
    const others = [...ownFolders, ...shown.slice(0, at), ...shown.slice(at + 1)];
    if (to === '/' || others.some((other) => to === other || to.startsWith(`${other}/`)))
      throw new BoxError(`nothing can be shown at ${to}`);
  }
}

/** Resolves when the script has created the box. Throws the script's error otherwise. */
async function readReady(child: ChildProcess, control: Duplex): Promise<void> {
  let told = '';
  let timer: NodeJS.Timeout | undefined;
  const end = (why: string): BoxError => new BoxError(`a box could not be made: ${told.trim() || why}`);
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(end('it took too long')), setUpMs);
      control.on('data', (part: Buffer) => {
        told += part.toString();
        if (told.endsWith('ready\n')) resolve();
      });
      child.once('error', (error) => reject(end(error.message)));
      // The error waits for the last output, because the tools write the reason there.
      child.once('exit', (code) =>
        setImmediate(() => setImmediate(() => reject(end(`its first process ended with ${code}`)))),
      );
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the child of a process that has at most one child, or 0 if it has none. */
function onlyChildOf(pid: number): number {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
  } catch {
    return 0;
  }
}
