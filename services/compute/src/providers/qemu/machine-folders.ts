import { randomUUID } from 'node:crypto';
import { access, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createDurably, errorCodeOf, readIfThere, syncFolder } from '@drydock/process';
import { claimJob, type JobRecord, jobsFolder, type MachineRecord, machineRecordSchema } from './qemu-records';

/** Whether a text can be the name of a machine. A name becomes part of a path, so any other text names no machine. */
export const isName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name);
const recordFile = (machineFolder: string): string => path.join(machineFolder, 'machine.json');

/** A file that an operator may put into a machine's folder. While it exists, nothing is done to the machine. */
const holdFile = 'held';

/** The folders of machines. A machine is in `machines/<name>`; after its deletion its jobs are in `gone/<name>`. */
export interface MachineFolders {
  of(machineId: string): string;
  /** The names in the folder `machines`, even of incomplete machines. */
  list(): Promise<string[]>;
  /** The machine; null if it does not exist (any more). */
  read(machineId: string): Promise<MachineRecord | null>;
  isHeld(machineId: string): Promise<boolean>;
  /** The folder of the machine's jobs, also after its deletion. */
  withJobs(machineId: string): Promise<string>;
  /**
   * Creates a machine with its first job. False if the name is taken. Of several simultaneous calls only one gets the
   * name.
   */
  create(record: MachineRecord, job: JobRecord): Promise<boolean>;
}

export function openMachineFolders(root: string): MachineFolders {
  const machines = path.join(root, 'machines');
  // A text that is no name becomes a folder that does not exist, so that no path leads out of the root.
  const within = (parent: string, id: string): string => path.join(root, parent, isName(id) ? id : '.none');
  const of = (machineId: string): string => within('machines', machineId);
  return {
    of,
    list: () => listFolder(machines),
    read: async (machineId) => {
      const text = await readIfThere(recordFile(of(machineId)));
      return text === null ? null : machineRecordSchema.parse(JSON.parse(text));
    },
    isHeld: (machineId) => exists(path.join(of(machineId), holdFile)),
    withJobs: async (machineId) =>
      (await exists(jobsFolder(of(machineId)))) ? of(machineId) : within('gone', machineId),
    create: async (record, job) => {
      // The folder is made in another place and then renamed, so that others see either the whole machine or none.
      const aside = path.join(root, 'new', randomUUID());
      for (const folder of [jobsFolder(aside), machines]) await mkdir(folder, { recursive: true, mode: 0o700 });
      await createDurably(recordFile(aside), `${JSON.stringify(record, null, 1)}\n`);
      await claimJob(aside, job);
      await writeFile(path.join(aside, 'lock'), '', { mode: 0o600 });
      await syncFolder(aside);
      return await moveTo(aside, of(record.name));
    },
  };
}

/**
 * Ends a deletion: moves the rest of the machine's folder to `gone`. The record was removed before the disk, so that a
 * half deleted machine counts as none.
 */
export async function retireMachine(machineFolder: string): Promise<void> {
  const gone = path.join(machineFolder, '../../gone');
  await mkdir(gone, { recursive: true, mode: 0o700 });
  const place = path.join(gone, path.basename(machineFolder));
  await rm(place, { recursive: true, force: true });
  await rename(machineFolder, place);
  await syncFolder(gone);
}

export async function removeRecord(machineFolder: string): Promise<void> {
  await rm(recordFile(machineFolder), { force: true });
  await syncFolder(machineFolder);
}

async function moveTo(aside: string, place: string): Promise<boolean> {
  try {
    await rename(aside, place);
    await syncFolder(path.dirname(place));
    return true;
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    if (errorCodeOf(error) === 'ENOTEMPTY' || errorCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

async function listFolder(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter(isName);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
