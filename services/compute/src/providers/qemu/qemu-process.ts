import { execFile, spawn } from 'node:child_process';
import { open, readlink, realpath, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readIfThere, syncFolder } from '@drydock/process';
import { z } from 'zod';
import type { MachineRecord } from './machine-folders';
import { askQmp, readStatus } from './qmp';

type Accelerator = 'kvm' | 'tcg';

const qemu = 'qemu-system-x86_64';
const confinement = ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'];
const run = promisify(execFile);

/**
 * A firmware of 64 KiB that counts from 300 million to 0 and then writes 1 to port 0xf4, which ends QEMU with the exit
 * code 3. A processor starts 16 bytes before the end of the firmware. The instructions: mov ecx, 300000000; dec ecx;
 * jnz -4; mov al, 1; out 0xf4, al.
 */
const countdown = Buffer.alloc(0x1_0000);
countdown.set([0x66, 0xb9, 0x00, 0xa3, 0xe1, 0x11, 0x66, 0x49, 0x75, 0xfc, 0xb0, 0x01, 0xe6, 0xf4], 0xfff0);

/**
 * Returns the accelerator under which a guest counts faster. KVM may exist and not work. Within some virtual machines
 * KVM is itself emulated, and can be so slow that a guest seems to hang: hundreds of times slower than QEMU's own
 * emulation. The two guests count at the same time, so that other work on this computer delays both.
 */
export async function chooseAccelerator(machineFolder: string, command = qemu): Promise<Accelerator> {
  const firmware = path.join(machineFolder, 'countdown.bin');
  await writeFile(firmware, countdown);
  const race = new AbortController();
  const count = async (accelerator: Accelerator): Promise<Accelerator> => {
    const args = ['-nodefaults', '-no-user-config', '-display', 'none', ...confinement, '-machine', 'q35', '-m', '16'];
    args.push('-accel', accelerator, '-cpu', 'max', '-bios', 'countdown.bin', '-device', 'isa-debug-exit,iobase=0xf4');
    const options = { cwd: machineFolder, env: {}, signal: race.signal, killSignal: 'SIGKILL' } as const;
    const code = await run(command, args, options).catch(({ code }: { code?: unknown }) => code);
    if (code !== 3) throw new Error(`no guest counts under ${accelerator}`);
    return accelerator;
  };
  // If no guest counts under either accelerator, the start of the machine fails and reports the reason.
  const winner = await Promise.any([count('kvm'), count('tcg')]).catch(() => 'tcg' as const);
  race.abort();
  await rm(firmware, { force: true });
  return winner;
}

/** The drive's name in QEMU's monitor. */
const driveName = 'disk';

/**
 * QEMU's arguments for a machine, which gets only the listed devices and no network. QEMU cannot start processes or
 * gain privileges. If a guest powers off, the QEMU process stays, so that Drydock can tell the shutdown from a crash.
 */
function commandLine({ cpus, memoryMb, system }: MachineRecord, accelerator: Accelerator): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...confinement,
    ...['-machine', 'q35', '-accel', accelerator, '-cpu', 'max', '-smp', String(cpus), '-m', String(memoryMb)],
    ...[
      '-drive',
      `id=${driveName},if=none,file=disk.qcow2,format=qcow2`,
      '-device',
      `virtio-blk-pci,drive=${driveName}`,
    ],
    ...['-chardev', 'socket,id=console,path=console.sock,server=on,wait=off', '-serial', 'chardev:console'],
    ...['-qmp', 'unix:work.sock,server=on,wait=off', '-qmp', 'unix:look.sock,server=on,wait=off'],
    ...['-pidfile', 'qemu.pid', '-action', 'shutdown=pause'],
    ...option('-kernel', system.kernel),
    ...option('-initrd', system.initrd),
    ...option('-append', system.append),
  ];
}

const option = (name: string, value: string | undefined): string[] => (value === undefined ? [] : [name, value]);

const readEveryMs = 25;
/** The time that a new process has to answer. It is hundreds of times longer than needed. */
const startMs = 30_000;
/** The time that a process has to write its data and end after it was asked to. */
const quitMs = 20_000;
const startRounds = 3;

/** Returns once the machine runs. Does nothing if it runs already. */
export async function startQemu(machineFolder: string, record: MachineRecord): Promise<void> {
  if ((await readStatus(machineFolder)) === 'running') return;
  await stopQemu(machineFolder);
  const accelerator = await chooseAccelerator(machineFolder);
  let reason = '';
  for (let round = 0; round < startRounds; round += 1) {
    reason = await tryStart(machineFolder, record, accelerator);
    // The start also fails if the machine runs already, for example after the death of the process that started QEMU.
    if ((await readStatus(machineFolder)) === 'running') return;
    await sleep(500);
  }
  throw new Error(`qemu does not start: ${reason}`);
}

/**
 * Starts QEMU. Resolves with '' if it answers, otherwise with its last output. QEMU gets no environment, because this
 * process's environment contains secrets.
 */
async function tryStart(machineFolder: string, record: MachineRecord, accelerator: Accelerator): Promise<string> {
  const log = await open(path.join(machineFolder, 'qemu.log'), 'w', 0o600);
  const child = spawn(qemu, commandLine(record, accelerator), {
    cwd: machineFolder,
    env: {},
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  let hasEnded = false;
  const ended = (): void => {
    hasEnded = true;
  };
  child.once('exit', ended).once('error', ended);
  await log.close();
  child.unref();
  for (let waitedMs = 0; waitedMs < startMs && !hasEnded; waitedMs += readEveryMs) {
    if ((await readStatus(machineFolder)) === 'running') return '';
    await sleep(readEveryMs);
  }
  child.kill('SIGKILL');
  return (await readIfThere(path.join(machineFolder, 'qemu.log')))?.trim().slice(-500) ?? '';
}

export class GuestUnresponsive extends Error {
  override readonly name = 'GuestUnresponsive';
}

/**
 * Presses the power button and returns once the guest has shut down. Does nothing if the guest is off. A second press
 * does no harm. @throws GuestUnresponsive
 */
export async function shutDownGuest(machineFolder: string, guestSeconds: number): Promise<void> {
  const hasShutDown = async (): Promise<boolean> => ['off', 'shutdown'].includes(await readStatus(machineFolder));
  if (await hasShutDown()) return;
  await askQmp({ machineFolder, monitor: 'work.sock', command: 'system_powerdown', deadlineMs: 5_000 });
  const until = Date.now() + guestSeconds * 1_000;
  while (Date.now() < until) {
    if (await hasShutDown()) return;
    await sleep(readEveryMs);
  }
  throw new GuestUnresponsive(`the guest did not shut down within ${guestSeconds} s`);
}

/**
 * Ends the process, with SIGKILL if it does not quit, and returns once the process has ended. Does nothing without a
 * process.
 */
export async function stopQemu(machineFolder: string): Promise<void> {
  if ((await findPid(machineFolder)) === null && (await readStatus(machineFolder)) === 'off') return;
  await askQmp({ machineFolder, monitor: 'work.sock', command: 'quit', deadlineMs: 5_000 }).catch(() => undefined);
  if (await hasGone(machineFolder, quitMs)) return;
  const pid = await findPid(machineFolder);
  if (pid !== null) process.kill(pid, 'SIGKILL');
  if (!(await hasGone(machineFolder, quitMs))) throw new Error('qemu does not end');
}

async function hasGone(machineFolder: string, patienceMs: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += readEveryMs) {
    if ((await findPid(machineFolder)) === null) return true;
    await sleep(readEveryMs);
  }
  return false;
}

/**
 * The pid of the machine's process; null if there is none. The process must run in the machine's folder, because the
 * pid in the file may belong to another process by now.
 */
export async function findPid(machineFolder: string): Promise<number | null> {
  const pid = Number(await readIfThere(path.join(machineFolder, 'qemu.pid')));
  if (!Number.isInteger(pid) || pid < 2) return null;
  const home = await readlink(`/proc/${pid}/cwd`).catch(() => null);
  return home !== null && home === (await realpath(machineFolder)) ? pid : null;
}

const disk = 'disk.qcow2';
/** Runs `qemu-img`. It refuses to change a disk that a machine has open. */
const image = async (cwd: string, ...args: string[]): Promise<string> =>
  (await run('qemu-img', args, { cwd, env: {} })).stdout;

const infoSchema = z.looseObject({
  'virtual-size': z.int(),
  snapshots: z.array(z.looseObject({ name: z.string() })).default([]),
});
const readInfo = async (cwd: string, file: string): Promise<z.infer<typeof infoSchema>> =>
  infoSchema.parse(JSON.parse(await image(cwd, 'info', '--force-share', '--output=json', file)));

export class DiskTooSmall extends Error {
  override readonly name = 'DiskTooSmall';
}

/** Makes a disk as an overlay of the image. Does nothing if the disk exists. @throws DiskTooSmall */
export async function createDisk(machineFolder: string, { diskGb, system }: MachineRecord): Promise<void> {
  const bytes = diskGb * 1_000_000_000;
  if ((await readInfo(machineFolder, system.disk))['virtual-size'] > bytes)
    throw new DiskTooSmall(`${diskGb} GB do not hold ${system.disk}`);
  const unfinished = path.join(machineFolder, `${disk}.new`);
  await rm(unfinished, { force: true });
  await image(
    machineFolder,
    'create',
    '-q',
    '-f',
    'qcow2',
    '-F',
    'qcow2',
    '-b',
    system.disk,
    unfinished,
    String(bytes),
  );
  await rename(unfinished, path.join(machineFolder, disk));
  await syncFolder(machineFolder);
}

/** The names of the snapshots in the disk. */
export async function listInside(machineFolder: string): Promise<ReadonlySet<string>> {
  return new Set((await readInfo(machineFolder, disk)).snapshots.map(({ name }) => name));
}

/**
 * Takes a snapshot of the disk at this moment, whether or not the machine runs. Does nothing if a snapshot of this name
 * exists.
 */
export async function takeInside(machineFolder: string, name: string): Promise<void> {
  if ((await listInside(machineFolder)).has(name)) return;
  if ((await readStatus(machineFolder)) === 'off') await image(machineFolder, 'snapshot', '-c', name, disk);
  else await askRunning(machineFolder, 'blockdev-snapshot-internal-sync', name);
}

/** Deletes the internal snapshot. A missing snapshot is no error. */
export async function deleteInside(machineFolder: string, name: string): Promise<void> {
  if (!(await listInside(machineFolder)).has(name)) return;
  if ((await readStatus(machineFolder)) === 'off') await image(machineFolder, 'snapshot', '-d', name, disk);
  else await askRunning(machineFolder, 'blockdev-snapshot-delete-internal-sync', name);
}

/**
 * Overwrites the disk with the snapshot. No machine may have the disk open. A crash leaves the old or the new content,
 * perhaps with clusters that nothing refers to; the next call frees them first. @throws also if the disk is damaged;
 * then nothing is changed
 */
export async function applyInside(machineFolder: string, name: string): Promise<void> {
  await mendInside(machineFolder);
  await image(machineFolder, 'snapshot', '-a', name, disk);
}

/**
 * Frees clusters that nothing refers to. An interrupted change may leave such clusters. The function must be called
 * before anybody writes to the disk. @throws if the disk is damaged in another way
 */
export async function mendInside(machineFolder: string): Promise<void> {
  await image(machineFolder, 'check', '-q', '-r', 'leaks', disk);
}

export const removeDisk = (machineFolder: string): Promise<void> => rm(path.join(machineFolder, disk), { force: true });

const askRunning = (machineFolder: string, command: string, name: string): Promise<unknown> =>
  askQmp({ machineFolder, monitor: 'work.sock', command, args: { device: driveName, name }, deadlineMs: 600_000 });
