import { execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { faultpoint } from '@drydock/process';
import { z } from 'zod';
import { isPowered } from '../change.rules';
import type { Accepted, Change, Checkpoint } from '../compute.types';
import {
  assertDeletionAllowed,
  assertPowerAllowed,
  assertRollbackAllowed,
  type Closing,
  type ComputeDriver,
  ComputeError,
  type ComputeReader,
} from '../compute-provider';
import {
  claimJob,
  isName,
  type JobRecord,
  type MachineFolders,
  type MachineRecord,
  openMachineFolders,
  readJobs,
  readLastJob,
  snapshotIdOf,
} from './machine-folders';
import { orUnavailable, qemuReader } from './qemu-reader';
import { readStatus } from './qmp';

/**
 * The files that a machine boots from: a disk with a boot loader, or a kernel that QEMU loads. These files are never
 * written to, because the machines' disks are overlays over them.
 */
export interface QemuImage {
  /** The absolute path of a qcow2 image. */
  disk: string;
  kernel?: string | undefined;
  initrd?: string | undefined;
  /** The kernel's command line. */
  append?: string | undefined;
}

export interface QemuSize {
  cpus: number;
  memoryMb: number;
  /** The size of the disk in GB of 10^9 bytes. */
  diskGb: number;
}

export interface QemuOptions {
  /**
   * The folder of one deploy target in one mode, as an absolute path. It contains the machines, their disks and their
   * jobs.
   */
  folder: string;
  zone: string;
  images: Readonly<Record<string, QemuImage>>;
  sizes: Readonly<Record<string, QemuSize>>;
  /**
   * Starts the work on a machine. By default the work runs in a separate process that outlives the caller's process.
   */
  beginWork?: (machineFolder: string) => void;
}

/**
 * A claimed job is visible to everybody at once. So the limit covers only the time between a worker's note of the send
 * and its claim of the job.
 */
const lostAnswerSecondsUsual = 10;
const close = async (): Promise<void> => undefined;

/** Machines of this host, for handlers. */
export function qemuComputeReader({ folder }: Pick<QemuOptions, 'folder'>): ComputeReader & Closing {
  return { ...qemuReader(openMachineFolders(folder)), close };
}

/** Machines of this host, for workers. The machines keep running without this process. */
export function qemuCompute(options: QemuOptions): ComputeDriver & Closing {
  const begin = options.beginWork ?? ((machineFolder: string) => beginWork(machineFolder));
  const folders = openMachineFolders(options.folder);
  // The process that carries out a job may have died, so each read of a running job by a worker starts the process
  // again.
  const changes: QemuChanges = { folders, reader: qemuReader(folders, begin), options, beginWork: begin };
  return {
    ...changes.reader,
    // The reconciliation lists the machines regularly, so the machines of a restarted host start again.
    listMachines: async (signal) => {
      await orUnavailable(reviveMachines(folders, begin));
      return await changes.reader.listMachines(signal);
    },
    lostAnswerSeconds: lostAnswerSecondsUsual,
    // A job has the workflow's id, and only one claim of a machine's next job number succeeds. So a change is accepted
    // once, however often it is sent.
    recognisesRepeats: true,
    prepare: (change) => orUnavailable(prepareChange(changes, change)),
    send: (change, checkpoint, signal) => orUnavailable(sendChange(changes, change, checkpoint, signal)),
    find: (change, checkpoint) => orUnavailable(findChange(changes, change, checkpoint)),
    close,
  };
}

interface QemuChanges {
  folders: MachineFolders;
  reader: ComputeReader;
  options: QemuOptions;
  beginWork(machineFolder: string): void;
}

const checkpointSchema = z.strictObject({ highestJob: z.int(), wasOn: z.boolean() });
const parse = (checkpoint: Checkpoint): z.infer<typeof checkpointSchema> =>
  checkpointSchema.parse(JSON.parse(checkpoint));

/**
 * Records the number of the machine's newest job and whether the machine should run. Every later job has a higher
 * number.
 */
async function prepareChange({ folders }: QemuChanges, change: Change): Promise<Checkpoint> {
  const machineFolder = 'machineId' in change ? folders.of(change.machineId) : null;
  const last = machineFolder === null ? null : await readLastJob(machineFolder);
  const wasOn = machineFolder !== null && (await isMeantToRun(machineFolder));
  return JSON.stringify({ highestJob: last?.number ?? 0, wasOn } satisfies z.infer<typeof checkpointSchema>);
}

/**
 * Whether the machine should run. A machine with a process should run, even if it is paused or busy, unless its guest
 * has shut down. A machine without a process may have crashed, so its jobs decide.
 */
async function isMeantToRun(machineFolder: string): Promise<boolean> {
  const status = await readStatus(machineFolder);
  return status === 'off' ? shouldRun(await readJobs(machineFolder)) : status !== 'shutdown';
}

/**
 * Finds the job that this change has begun since `prepare`. Without such a job, a deletion counts as done if the
 * machine or snapshot is gone. Otherwise returns null.
 */
async function findChange(
  { folders, reader }: QemuChanges,
  change: Change,
  checkpoint: Checkpoint,
): Promise<Accepted | null> {
  const machineId = 'machineId' in change ? change.machineId : change.order.name;
  const jobs = await readJobs(await folders.withJobs(machineId), parse(checkpoint).highestJob);
  const begun = jobs.find(({ kind, reference }) => kind === change.kind && reference === change.reference);
  if (begun !== undefined) return accepted(machineId, begun);
  const isDone =
    (change.kind === 'delete' && (await folders.read(machineId)) === null) ||
    (change.kind === 'delete_snapshot' && (await reader.readSnapshot(machineId, change.snapshotId)) === null);
  return isDone ? done(machineId) : null;
}

/**
 * Accepts a change by claiming a job. A claimed job is carried out even if this process dies, and no change is accepted
 * twice.
 */
async function sendChange(
  changes: QemuChanges,
  change: Change,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  await assertTools();
  if (change.kind === 'rebuild') throw new ComputeError('unsupported', 'qemu machines are not rebuilt');
  const { folders, reader, beginWork } = changes;
  const begun = await findChange(changes, change, checkpoint);
  if (begun !== null) return begun;
  if (change.kind === 'create') return await sendCreate(changes, change, signal);
  const { machineId } = change;
  // The last job is read before the checks, so that the claim fails if another job is claimed during the checks.
  const last = await readLastJob(folders.of(machineId));
  const machine = await reader.readMachine(machineId, signal);
  if (machine === null) throw new ComputeError('machine_not_found', `no machine ${machineId}`);
  if (change.kind === 'start' && machine.powerState === 'on') return done(machineId);
  if (change.kind === 'delete') await assertDeletionAllowed(reader, change, signal);
  if (change.kind === 'rollback') await assertRollbackAllowed(reader, change, signal);
  if (change.kind === 'power_on' || change.kind === 'power_off' || change.kind === 'reboot') {
    const isDone = isPowered(await assertPowerAllowed(reader, change, signal), change.kind);
    // A machine that is off without having been powered off is revived later, unless a power_off is among its jobs. So
    // this power_off gets a job although the machine is off.
    const mayRevive = change.kind === 'power_off' && wasLeftOn(await readJobs(folders.of(machineId)));
    if (isDone && !mayRevive) return done(machineId);
  }
  if (machine.isLocked || last?.state === 'running')
    throw new ComputeError('locked', `machine ${machineId} is being worked on`);
  const startsAfter = change.kind === 'reboot' || (change.kind === 'rollback' && parse(checkpoint).wasOn);
  const job = jobOf(change, (last?.number ?? 0) + 1, startsAfter);
  faultpoint(`qemu.${change.kind}.before_claim`);
  signal?.throwIfAborted();
  if (!(await ambiguously(claimJob(folders.of(machineId), job))))
    throw new ComputeError('locked', 'somebody else was quicker');
  beginWork(folders.of(machineId));
  return accepted(machineId, job);
}

type Of<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>;

async function sendCreate(
  { folders, options, beginWork }: QemuChanges,
  change: Of<'create'>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { name, spec, image, zone, labels, sshKeys = [] } = change.order;
  if (sshKeys.length > 0) throw new ComputeError('unsupported', 'qemu machines take no SSH keys');
  const size = Object.hasOwn(options.sizes, spec) ? options.sizes[spec] : undefined;
  const system = Object.hasOwn(options.images, image) ? options.images[image] : undefined;
  if (size === undefined || system === undefined || zone !== options.zone || !isName(name))
    throw new ComputeError('order_refused', `${spec}, ${image} or ${zone} is not configured, or ${name} no name`);
  const record: MachineRecord = { name, spec, image, zone, labels: { ...labels }, ...size, system };
  const job = jobOf(change, 1, false);
  signal?.throwIfAborted();
  // The name of a machine is Drydock's id of the server. If the name is taken, an earlier call whose answer was lost
  // has made the machine.
  if (!(await ambiguously(folders.create(record, job))))
    throw new ComputeError('ambiguous', `there is a machine ${name}`);
  beginWork(folders.of(name));
  return accepted(name, job);
}

const jobOf = (change: Exclude<Change, Of<'rebuild'>>, number: number, startsAfter: boolean): JobRecord => ({
  ...{ number, kind: change.kind, reference: change.reference, state: 'running', isApplied: false, startsAfter },
  snapshotId: 'snapshotId' in change ? change.snapshotId : null,
  description: 'description' in change ? change.description : '',
  isForced: 'isForced' in change && change.isForced,
  guestSeconds: 'guestSeconds' in change ? change.guestSeconds : 0,
  failure: null,
  begunAt: new Date().toISOString(),
});

const accepted = (machineId: string, job: JobRecord): Accepted => ({
  ...{ machineId, actionId: String(job.number) },
  snapshotId: job.kind === 'take_snapshot' ? snapshotIdOf(job) : null,
});
const done = (machineId: string): Accepted => ({ actionId: null, machineId, snapshotId: null });

/** Turns the error of a write into `ambiguous`, because a write that failed may still have taken effect. */
function ambiguously<T>(claim: Promise<T>): Promise<T> {
  return claim.catch((error: unknown) => {
    throw new ComputeError('ambiguous', error instanceof Error ? error.message : String(error), { cause: error });
  });
}

const run = promisify(execFile);
/** The program is loaded from the build output even under jest, which runs this file from its source. */
const program = path.resolve(__dirname, '../../../dist/providers/qemu/run-job.js');

/**
 * Starts a process that carries out the machine's job and outlives the caller's process. The function may be called at
 * any time: `flock` holds the machine's lock while the job's process lives, so a second process ends at once.
 * `environment` replaces this process's environment.
 */
export function beginWork(machineFolder: string, environment?: Record<string, string>): void {
  let log: number;
  try {
    log = openSync(path.join(machineFolder, 'work.log'), 'a', 0o600);
  } catch {
    // The machine was deleted meanwhile, so there is no job.
    return;
  }
  const args = ['--nonblock', '--no-fork', path.join(machineFolder, 'lock'), process.execPath, program, machineFolder];
  const env = environment === undefined ? {} : { env: environment };
  const child = spawn('flock', args, { detached: true, stdio: ['ignore', log, log], ...env });
  // A failed start is ignored, because the next read of the job starts the process again.
  child.once('error', () => undefined);
  child.unref();
  closeSync(log);
}

let tools: Promise<void> | null = null;

/**
 * Checks that the tools of QEMU are installed. It must be called before any work is accepted.
 *
 * @throws ComputeError `unavailable` if a tool is missing
 */
function assertTools(): Promise<void> {
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

/** The reference of jobs that revive a machine. No workflow asked for them. */
const reviveReference = 'revive';
/** After this many successive revivals within a day, the machine is left to staff. */
const revivalsMax = 5;
const dayMs = 24 * 3_600_000;

/**
 * Starts machines that should run and have no process. Machines lose their process when the host restarts. A machine
 * that its owner powered off from inside still has its process, so it is not started. A machine whose last start failed
 * is not started again.
 */
export async function reviveMachines(
  folders: MachineFolders,
  beginWork: (machineFolder: string) => void,
): Promise<void> {
  // A damaged folder of one machine must not prevent the start of other machines. A request for the damaged machine
  // gets the error.
  for (const machineId of await folders.list())
    if (await revive(folders, machineId).catch(() => false)) beginWork(folders.of(machineId));
}

/** Claims the start of the machine if it should run. Resolves with true if this call has claimed it. */
async function revive(folders: MachineFolders, machineId: string): Promise<boolean> {
  const machineFolder = folders.of(machineId);
  if (
    (await readStatus(machineFolder)) !== 'off' ||
    (await folders.isHeld(machineId)) ||
    (await folders.read(machineId)) === null
  )
    return false;
  const jobs = await readJobs(machineFolder);
  const last = jobs.at(-1);
  if (last === undefined || last.state === 'running' || !shouldRun(jobs)) return false;
  return await claimJob(machineFolder, {
    ...{ number: last.number + 1, kind: 'start', reference: reviveReference, state: 'running' },
    ...{ isApplied: false, startsAfter: false, isForced: false, guestSeconds: 0, snapshotId: null, description: '' },
    ...{ failure: null, begunAt: new Date().toISOString() },
  });
}

/**
 * Whether the job decides if the machine should run. A failed power_off is not decisive, because it has changed
 * nothing.
 */
const isDecisive = ({ kind, state }: JobRecord): boolean =>
  kind === 'power_off' ? state === 'succeeded' : ['start', 'power_on', 'reboot', 'rollback'].includes(kind);

/** Whether a machine without a process should run. A machine that was revived too often stays off. */
function shouldRun(jobs: readonly JobRecord[]): boolean {
  const isRecent = ({ begunAt }: JobRecord): boolean => Date.now() - Date.parse(begunAt) < dayMs;
  const lately = jobs.slice(-revivalsMax);
  const isGivenUp =
    lately.length === revivalsMax && lately.every((job) => job.reference === reviveReference && isRecent(job));
  return !isGivenUp && wasLeftOn(jobs);
}

/**
 * Whether the machine's last decisive job has left it on. That job must have started it, or be a rollback or reboot
 * that ends with a start.
 */
function wasLeftOn(jobs: readonly JobRecord[]): boolean {
  const decisive = jobs.findLast(isDecisive);
  if (decisive === undefined || decisive.kind === 'power_off') return false;
  return decisive.kind === 'start' || decisive.kind === 'power_on'
    ? decisive.state === 'succeeded'
    : decisive.startsAfter;
}
