import { createHash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { isLeftover, readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';
import { jobViewSchema } from './job-protocol';

const keptMs = 7 * 24 * 60 * 60 * 1_000;
/**
 * The most finished jobs of one site or database that are kept. A result may have some megabytes, and a customer can
 * cause many jobs in seven days. Callers read a result within moments.
 */
export const finishedMax = 20;

/**
 * A job as it is written to disk. Its specification is left out, because it contains keys and no job continues after a
 * restart.
 */
const recordSchema = jobViewSchema.omit({ progress: true }).extend({
  thing_id: z.string(),
  fence: z.string(),
  workflow_id: z.string().nullable(),
  spec_sha256: z.string(),
});
export type JobRecord = z.infer<typeof recordSchema>;

export const isFinished = ({ state }: Pick<JobRecord, 'state'>): boolean => state !== 'queued' && state !== 'running';

export const hashSpec = (spec: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(spec) ?? '')
    .digest('hex');

const endMsOf = ({ finished_at }: JobRecord): number =>
  finished_at === null ? Number.MAX_SAFE_INTEGER : Date.parse(finished_at);

/**
 * One file for each job, `jobs/<thing>/<job>.json`. It is written before the agent acts on the job, and kept for seven
 * days after the job's end, unless the site or database has {@link finishedMax} newer finished jobs.
 */
export class JobJournal {
  private readonly folder: string;
  private readonly now: () => Date;

  constructor(hostFolder: string, now: () => Date) {
    this.folder = path.join(hostFolder, 'jobs');
    this.now = now;
  }

  async write(record: JobRecord): Promise<void> {
    await mkdir(path.join(this.folder, record.thing_id), { recursive: true, mode: 0o700 });
    await writeDurably(this.fileOf(record), `${JSON.stringify(record)}\n`);
  }

  /**
   * Reads the recorded jobs, those of each site or database in the order of their ends. A job that is recorded as
   * unfinished was cut off when an earlier process of the agent ended.
   */
  async readAll(): Promise<JobRecord[]> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const records: JobRecord[] = [];
    for (const thing of await readdir(this.folder)) records.push(...(await this.readThing(thing)));
    return records;
  }

  /**
   * Reads the jobs of a site or database, and removes the oldest finished ones above {@link finishedMax}. An earlier
   * version may have left thousands of large results, so each surplus result is removed before the next is read.
   */
  private async readThing(thing: string): Promise<JobRecord[]> {
    const records: JobRecord[] = [];
    for (const name of await readdir(path.join(this.folder, thing))) {
      const file = path.join(this.folder, thing, name);
      const text = isLeftover(name) ? null : await readIfThere(file);
      if (text === null) {
        await rm(file, { force: true });
        continue;
      }
      records.push(recordSchema.parse(JSON.parse(text)));
      // Unfinished jobs come last.
      records.sort((a, b) => endMsOf(a) - endMsOf(b));
      const oldest = records.filter(isFinished).length > finishedMax ? records.shift() : undefined;
      if (oldest !== undefined) await this.forget(oldest);
    }
    return records;
  }

  isDue({ finished_at }: JobRecord): boolean {
    return finished_at !== null && this.now().getTime() - Date.parse(finished_at) > keptMs;
  }

  async forget(record: JobRecord): Promise<void> {
    await rm(this.fileOf(record), { force: true });
  }

  private fileOf({ thing_id, job_id }: JobRecord): string {
    return path.join(this.folder, thing_id, `${job_id}.json`);
  }
}
