import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { createDurably, errorCodeOf, readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';

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
   * Whether a rollback has overwritten the disk, or a reboot has stopped the machine. The guest may write again after
   * that, so the work up to there is not repeated.
   */
  isApplied: z.boolean(),
  /** Whether the machine ran before its rollback or reboot. */
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
 * The snapshot's name in the disk. It is not a bare number, because QEMU would take that for its own number of a
 * snapshot.
 */
export const snapshotIdOf = ({ number }: Pick<JobRecord, 'number'>): string => `s${number}`;

export const jobsFolder = (machineFolder: string): string => path.join(machineFolder, 'jobs');
const fileOf = (machineFolder: string, number: number): string =>
  path.join(jobsFolder(machineFolder), `${String(number).padStart(8, '0')}.json`);
const textOf = (job: JobRecord): string => `${JSON.stringify(job, null, 1)}\n`;

/** Reads the job of that number; null when there is none. */
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
