import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { createDurably, readIfThere, writeDurably } from '@drydock/process/durable-file';
import { errorCodeOf } from '@drydock/process/error-code';
import { type JobRecord, jobRecordSchema } from './qemu-records';

export const jobsFolder = (machineFolder: string): string => path.join(machineFolder, 'jobs');
const fileOf = (machineFolder: string, number: number): string =>
  path.join(jobsFolder(machineFolder), `${String(number).padStart(8, '0')}.json`);
export const textOf = (job: JobRecord): string => `${JSON.stringify(job, null, 1)}\n`;

/** Null when there is none of that number. */
export async function readJob(machineFolder: string, number: number): Promise<JobRecord | null> {
  const text = await readIfThere(fileOf(machineFolder, number));
  return text === null ? null : jobRecordSchema.parse(JSON.parse(text));
}

/** Ascending; empty when there is no such machine. */
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

/** The newest job: it locks the machine while it runs. */
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
 * False if another claim was quicker: of all claims of a number only one succeeds, so that one job at a time runs on a
 * machine.
 */
export const claimJob = (machineFolder: string, job: JobRecord): Promise<boolean> =>
  createDurably(fileOf(machineFolder, job.number), textOf(job));

export const saveJob = (machineFolder: string, job: JobRecord): Promise<void> =>
  writeDurably(fileOf(machineFolder, job.number), textOf(job));
