import { execFile } from 'node:child_process';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { syncFolder } from '@drydock/process';
import { z } from 'zod';
import { driveName } from './qemu-process';
import type { MachineRecord } from './qemu-records';
import { askQmp, readStatus } from './qmp';

const disk = 'disk.qcow2';
const run = promisify(execFile);
/** `qemu-img` refuses a disk that a machine has open, unless it only reads it. */
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

/** Makes a disk as an overlay of the image, which is only read. Does nothing if it exists. @throws DiskTooSmall */
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

/** Names of the snapshots within the disk. */
export async function listInside(machineFolder: string): Promise<ReadonlySet<string>> {
  return new Set((await readInfo(machineFolder, disk)).snapshots.map(({ name }) => name));
}

/**
 * Takes a snapshot of the disk at this moment, whether or not the machine runs. Does nothing if one of this name
 * exists.
 */
export async function takeInside(machineFolder: string, name: string): Promise<void> {
  if ((await listInside(machineFolder)).has(name)) return;
  if ((await readStatus(machineFolder)) === 'off') await image(machineFolder, 'snapshot', '-c', name, disk);
  else await askRunning(machineFolder, 'blockdev-snapshot-internal-sync', name);
}

/** Deletes the internal snapshot. A missing one is no error. */
export async function deleteInside(machineFolder: string, name: string): Promise<void> {
  if (!(await listInside(machineFolder)).has(name)) return;
  if ((await readStatus(machineFolder)) === 'off') await image(machineFolder, 'snapshot', '-d', name, disk);
  else await askRunning(machineFolder, 'blockdev-snapshot-delete-internal-sync', name);
}

/**
 * Overwrites the disk with the snapshot; no machine may have it open. A crash leaves the old or the new content, and at
 * worst clusters without an owner, which are freed first. @throws also if the disk is damaged: then nothing is changed
 */
export async function applyInside(machineFolder: string, name: string): Promise<void> {
  await mendInside(machineFolder);
  await image(machineFolder, 'snapshot', '-a', name, disk);
}

/**
 * Frees clusters of the disk that an interrupted change has left without an owner. Call it before anybody writes to the
 * disk. @throws if the disk is damaged in another way
 */
export async function mendInside(machineFolder: string): Promise<void> {
  await image(machineFolder, 'check', '-q', '-r', 'leaks', disk);
}

export const removeDisk = (machineFolder: string): Promise<void> => rm(path.join(machineFolder, disk), { force: true });

const askRunning = (machineFolder: string, command: string, name: string): Promise<unknown> =>
  askQmp({ machineFolder, monitor: 'work.sock', command, args: { device: driveName, name }, deadlineMs: 600_000 });
