import { randomUUID } from 'node:crypto';
import { access, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createDurably, errorCodeOf, readIfThere, syncFolder, writeDurably } from '@drydock/process';
import { z } from 'zod';

/** Whether a text can be the name of a machine. A name becomes part of a path, so any other text names no machine. */
export const isName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name);
const recordFile = (machineFolder: string): string => path.join(machineFolder, 'machine.json');

/** A file that an operator may put into a machine's folder. While it exists, no new work on the machine begins. */
const holdFile = 'held';

/** The folders of machines. A machine is in `machines/<name>`; after its deletion its jobs are in `gone/<name>`. */
export interface MachineFolders {
  of(machineId: string): string;
  /** The names in the folder `machines`, even of machines whose deletion has not ended. */
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
      // The folder is made below `new` and then renamed, so that other processes never see an incomplete machine.
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
 * half deleted machine counts as deleted.
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

/**
 * Everything that is needed to start the machine. It is stored, so that a change of the configuration does not change
 * existing machines.
 */
export const machineRecordSchema = z.strictObject({
  name: z.string(),
  spec: z.string(),
  image: z.string(),
  zone: z.string(),
  labels: z.record(z.string(), z.string()),
  cpus: z.int(),
  memoryMb: z.int(),
  diskGb: z.int(),
  system: z.strictObject({
    disk: z.string(),
    kernel: z.string().optional(),
    initrd: z.string().optional(),
    append: z.string().optional(),
  }),
});
export type MachineRecord = z.infer<typeof machineRecordSchema>;

/**
 * A piece of work on one machine. The newest job locks the machine while it runs. All jobs are kept as the history of
 * the machine.
 */
const jobRecordSchema = z.strictObject({
  /** The jobs of a machine are numbered from 1 (`create`) without gaps. */
  number: z.int().positive(),
  kind: z.enum([
    'create',
    'start',
    'power_on',
    'power_off',
    'reboot',
    'delete',
    'take_snapshot',
    'delete_snapshot',
    'rollback',
  ]),
  reference: z.string(),
  state: z.enum(['running', 'succeeded', 'failed']),
  /**
   * Whether a rollback has overwritten the disk, or a reboot has stopped the machine. From then on the guest may write
   * again, so the job must not overwrite the disk or stop the machine a second time.
   */
  isApplied: z.boolean(),
  /** Whether the machine is started after its rollback or reboot. */
  startsAfter: z.boolean(),
  /** Whether a power_off or reboot stops the machine without asking its guest. */
  isForced: z.boolean().default(false),
  /** Seconds that the guest has to shut down after it was asked. */
  guestSeconds: z.int().default(0),
  /** The snapshot that is deleted or restored; null for every other kind of job. */
  snapshotId: z.string().nullable(),
  /** The description of the snapshot that is taken; empty for every other kind. */
  description: z.string(),
  failure: z
    .strictObject({
      reason: z.enum(['rejected', 'incompatible', 'snapshot_not_found', 'guest_unresponsive']),
      internal: z.string(),
    })
    .nullable(),
  begunAt: z.iso.datetime(),
});
export type JobRecord = z.infer<typeof jobRecordSchema>;

/**
 * The snapshot's name in the disk. The letter is needed, because QEMU would take a bare number for its own number of a
 * snapshot.
 */
export const snapshotIdOf = ({ number }: Pick<JobRecord, 'number'>): string => `s${number}`;

const jobsFolder = (machineFolder: string): string => path.join(machineFolder, 'jobs');
const fileOf = (machineFolder: string, number: number): string =>
  path.join(jobsFolder(machineFolder), `${String(number).padStart(8, '0')}.json`);
const textOf = (job: JobRecord): string => `${JSON.stringify(job, null, 1)}\n`;

export async function readJob(machineFolder: string, number: number): Promise<JobRecord | null> {
  const text = await readIfThere(fileOf(machineFolder, number));
  return text === null ? null : jobRecordSchema.parse(JSON.parse(text));
}

/** Lists the numbers of the jobs, ascending. Empty when the machine does not exist. */
async function listNumbers(machineFolder: string): Promise<number[]> {
  try {
    const names = await readdir(jobsFolder(machineFolder));
    return names
      .filter((name) => /^\d{8}\.json$/.test(name))
      .map((name) => Number.parseInt(name, 10))
      .sort((a, b) => a - b);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** The newest job, which locks the machine while it runs. */
export async function readLastJob(machineFolder: string): Promise<JobRecord | null> {
  const number = (await listNumbers(machineFolder)).at(-1);
  return number === undefined ? null : await readJob(machineFolder, number);
}

/** Reads the jobs with a number above `after`, in ascending order. */
export async function readJobs(machineFolder: string, after = 0): Promise<JobRecord[]> {
  const numbers = (await listNumbers(machineFolder)).filter((number) => number > after);
  const jobs = await Promise.all(numbers.map((number) => readJob(machineFolder, number)));
  return jobs.filter((job) => job !== null);
}

/**
 * Claims the number of a job. Resolves with false if another claim of the number was first. Only one claim succeeds, so
 * one job at a time runs on a machine.
 */
export const claimJob = (machineFolder: string, job: JobRecord): Promise<boolean> =>
  createDurably(fileOf(machineFolder, job.number), textOf(job));

export const saveJob = (machineFolder: string, job: JobRecord): Promise<void> =>
  writeDurably(fileOf(machineFolder, job.number), textOf(job));
