import { createHash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { isLeftover, readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';
import { jobViewSchema } from './job-protocol';

const keptMs = 7 * 24 * 60 * 60 * 1_000;

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

/**
 * One file for each job, `jobs/<thing>/<job>.json`. It is written before the agent acts on the job, and kept for seven
 * days after the job's end.
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

  /** Reads every recorded job. A job that is recorded as unfinished ended with an earlier process of the agent. */
  async readAll(): Promise<JobRecord[]> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const records: JobRecord[] = [];
    for (const thing of await readdir(this.folder)) {
      for (const name of await readdir(path.join(this.folder, thing))) {
        const file = path.join(this.folder, thing, name);
        const text = isLeftover(name) ? null : await readIfThere(file);
        if (text === null) await rm(file, { force: true });
        else records.push(recordSchema.parse(JSON.parse(text)));
      }
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
