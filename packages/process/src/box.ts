import { type ChildProcess, type IOType, type StdioOptions, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BoxListeners, handOverFd, handOverSource, takeListeners } from './box-network';
import { boxScript, lastNamespaceScript } from './box-script';
import { isSameProcess, type ProcessProof, proveProcess, sendSignal } from './end-process';
import type { ChildExit, GuardedChild } from './guarded-child';
import type { Isolation } from './isolation';

/** A file or folder of the machine that a box shows. `to` is its path inside. */
export interface BoxMount {
  from: string;
  to: string;
  writable: boolean;
}

/** Limits for the box's processes, where the kernel counts for each process (`processes`: for the account). */
export interface BoxLimits {
  /**
   * Private writable memory of one process. Address space is not counted (WebAssembly reserves gigabytes that it never
   * touches), nor what Node maps for its code.
   */
  memoryBytes?: number;
  /** Processes and threads; Node alone has about a dozen threads. */
  processes?: number;
  openFiles?: number;
  /** Size of the largest file that can be written. */
  fileBytes?: number;
  /** Size of the box's own /tmp, which lives in memory; 64 MB when not given. */
  tmpBytes?: number;
}

/**
 * `dac_override`: reads, writes and removes files whatever their modes are. `fowner`: acts as the owner of any file,
 * also in sticky folders.
 */
export type BoxRight = 'dac_override' | 'fowner';

export interface BoxOptions {
  isolation: Isolation;
  /**
   * Program and arguments, with paths inside the box. Anybody on this machine can read them, so they may hold no
   * secret.
   */
  command: readonly string[];
  /** The whole environment: nothing is inherited. */
  env: Readonly<Record<string, string>>;
  /** uid and gid of the box's processes if we are root; otherwise null (seen from outside they are our own). */
  account: number | null;
  /** Rights of root over the box's files, for a program of ours; only if we are root. Absent: none. */
  rights?: readonly BoxRight[];
  /**
   * The paths that a box shows besides read-only system folders, four devices, a /proc and a /tmp of its own, and Node
   * itself.
   */
  mounts: readonly BoxMount[];
  workdir: string;
  limits?: BoxLimits;
  /**
   * Gives the box a network of its own, with only a loopback. `BoxedChild.listeners` has a listener on that loopback
   * for each of these ports. Absent: the box shares the machine's network.
   */
  ownNetwork?: { ports: readonly number[] };
  /**
   * Forbids the command to make user namespaces, in which it would have rights over more of the kernel. If we are root,
   * it then sees files of other accounts as those of `nobody`.
   */
  isLastNamespace?: boolean;
  /**
   * The descriptors, at most eight, in the form that `spawn` takes. The command has no others. If the command closes a
   * descriptor, the other end sees that only when the command ends.
   */
  stdio: StdioOptions;
  /** All processes of the box end when this process ends, in whatever way. */
  onOrphan: 'SIGKILL';
}

/** A child in a box. */
export interface BoxedChild extends GuardedChild {
  /**
   * The box's root as a path of ours, through its first process, whose root the command cannot change. Everything below
   * it is the command's: open only a last name without following a link.
   */
  root: string;
  /** The listeners in the box's own network that we serve. They close when the box ends. */
  listeners: BoxListeners;
}

/** Why a box could not be made. */
export class BoxError extends Error {
  override readonly name = 'BoxError';
}

/** Limit for descriptors: the script accepts only those of one digit, and needs two of them itself. */
const stdioMax = 8;
/** The descriptor of the connection between us and the script. */
const controlFd = 9;
const setUpMs = 15_000;
const tmpBytesUsual = 64 * 2 ** 20;
const toolFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** Matches variables that would change the tools which make the box. These run outside of it and with all rights. */
const forbiddenEnv = /^(?:_box_.*|LD_.*|BASH.*|ENV|SHELLOPTS|IFS|PS4|LIBMOUNT_.*|GLIBC_TUNABLES|GCONV_PATH)$/;
/** The folders that every box has; no mount can replace them. */
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
 * Starts a program in a box: namespaces of its own, in which only `mounts` of this machine is visible. All programs of
 * customers run this way, and so do our own when they work on a customer's content. A link, a rename or a race inside
 * can reach only the customer's own files. The network is shared with the machine, unless `ownNetwork` is given.
 * `proof` and `stop` are about the command itself, under the pid that we see; inside it has another one. When the
 * command ends, all that it started ends, and `exited` resolves after that. A command that a signal ended, and one that
 * exits with 128 and that signal's number, look the same. @throws BoxError
 */
export async function spawnInBox(options: BoxOptions): Promise<BoxedChild> {
  const child = startScript(options);
  const exited = new Promise<ChildExit>((resolve) =>
    child.once('exit', (code, signal) => resolve(exitOf(code, signal))),
  );
  const control = controlOf(child);
  control.on('error', () => undefined); // the script has gone, which `exited` tells
  const taking = takeListeners(child, options.ownNetwork?.ports ?? []);
  try {
    await readReady(child, control);
    const listeners = await taking;
    const init = onlyChildOf(child.pid ?? 0);
    const proof = proveProcess(onlyChildOf(init));
    if (proof === null) throw new BoxError('the first process of the box has gone');
    const target: Target = { wrapper: child, command: proof, exited };
    // The command is started last, so that the caller can listen to the child before it ends.
    control.write('go\n', () => control.destroy());
    const stop = (signal: NodeJS.Signals, graceMs: number): Promise<void> => stopBox(target, signal, graceMs);
    return { process: child, proof, exited, stop, root: `/proc/${init}/root`, listeners };
  } catch (error) {
    child.kill('SIGKILL');
    control.destroy();
    throw error;
  }
}

/** Node opens both ends of a "pipe"; its types know only five descriptors. */
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
 * Signals go to the command. When it ends, the box's init ends, and with it everything that the command has started.
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
  // The box runs in a session of its own. So a Ctrl-C in our terminal reaches only us, and the box has no terminal to
  // write to.
  return spawn(program, args, { cwd: '/', env: { ...options.env }, stdio, detached: true });
}

/**
 * setpriv (ends with us) → unshare → the script → [unshare, back to our uid] → prlimit → setpriv (only `rights`) → the
 * command.
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
    // Without root the command's own namespace is the only one below the box's.
    ...[isRoot || !isLastNamespace ? '' : '1', String(givenStdio(options).length)],
    ...[process.execPath, handOverSource, (ownNetwork?.ports ?? []).join(' ')],
    ...[String(shown.length), ...shown.flatMap(({ from, to, writable }) => [from, to, writable ? 'rw' : 'ro'])],
    // The change of account is needed because Postgres and others refuse to run as root. It also removes the last right
    // over the namespaces of the box.
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
 * Node 24 and later map the area for compiled code, half a gigabyte, writable at the start and hardly touch it. The
 * kernel still counts the area as private memory. We run the same Node, so our own map shows whether it has one. A
 * process with worker threads has several.
 */
function nodeCodeBytes(): number {
  codeBytes ??= [...fs.readFileSync('/proc/self/maps', 'latin1').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rwxp/gm)]
    .map(([, from = '0', to = '0']) => Number.parseInt(to, 16) - Number.parseInt(from, 16))
    .reduce((sum, bytes) => Math.min(sum + bytes, 2 ** 29), 0);
  return codeBytes;
}

/** Mounts Node if it is not in /usr: the program alone, under its own path. */
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
 * Hides the descriptors that this process has inherited open from its children. Node closes only those that it opened
 * itself, and a shell only those of one digit. Each inherited descriptor from `first` on is replaced by one to
 * /dev/null.
 */
function overInherited(first: number): Descriptors {
  inherited ??= fs.readdirSync('/proc/self/fd').map(Number).filter(isPassedOn);
  nothingFd ??= fs.openSync('/dev/null', 'r');
  const last = Math.max(first - 1, ...inherited);
  return Array.from({ length: last - first + 1 }, (_, n) =>
    inherited?.includes(first + n) === true ? nothingFd : 'ignore',
  );
}

/** O_CLOEXEC, as Linux shows it in octal. */
const closedOnExec = 0o2_000_000;

function isPassedOn(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '';
    return (Number.parseInt(flags, 8) & closedOnExec) === 0;
  } catch {
    // The descriptor was that of the listing itself, which is closed.
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
    // A mount point below another one is refused, because we would have to create it in a folder that may be a
    // customer's.
    const others = [...ownFolders, ...shown.slice(0, at), ...shown.slice(at + 1)];
    if (to === '/' || others.some((other) => to === other || to.startsWith(`${other}/`)))
      throw new BoxError(`nothing can be shown at ${to}`);
  }
}

/** Resolves when the script has made the box; throws the script's error otherwise. */
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
      // The error waits for the last output, because the tools' message is the reason.
      child.once('exit', (code) =>
        setImmediate(() => setImmediate(() => reject(end(`its first process ended with ${code}`)))),
      );
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Each of the processes that make a box has one child; 0 if it has gone. */
function onlyChildOf(pid: number): number {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
  } catch {
    return 0;
  }
}

const signalNames = new Map(Object.entries(os.constants.signals).map(([name, number]) => [number, name]));

/** The script exits as shells do: with 128 plus the number of the signal that ended the command. */
function exitOf(code: number | null, signal: NodeJS.Signals | null): ChildExit {
  const name = code === null ? undefined : signalNames.get(code - 128);
  return isSignal(name) ? { code: null, signal: name } : { code, signal };
}

const isSignal = (name: string | undefined): name is NodeJS.Signals =>
  name !== undefined && name in os.constants.signals;
