import { randomBytes } from 'node:crypto';
import { type Dirent, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { runJobProgram } from '@drydock/agent/jobs';
import { errorCodeOf } from '@drydock/process';
import { z } from 'zod';

const setupSchema = z.strictObject({ dir: z.string(), batch_files: z.int().min(1), pause_ms: z.int().min(0) });

/** Limit for the paths that the report names, each with its error. */
const namedMost = 10;

/**
 * Removes everything that it can from a folder, slowly, and names the rest. Names are bytes. A folder inside another
 * one is moved to the top first, so that paths stay short however deep the tree is; if it cannot be moved, it is
 * emptied in its place. The program runs in the box of the site that owns the files, so nothing in the tree leads
 * anywhere else.
 */
class Emptying {
  private readonly top: Buffer;
  private readonly setup: z.infer<typeof setupSchema>;
  private readonly named: string[] = [];
  private steps = 0;
  private left = 0;

  constructor(setup: z.infer<typeof setupSchema>) {
    this.setup = setup;
    this.top = Buffer.from(setup.dir);
  }

  async run(): Promise<{ left: number; named: string[] }> {
    /** Names at the top that stay. */
    const tried = new Set<string>();
    for (let entries = this.entriesIn(this.top); entries.length > 0; ) {
      for (const entry of entries) {
        await this.remove(this.top, entry);
        tried.add(entry.name.toString('latin1'));
      }
      entries = this.entriesIn(this.top).filter(({ name }) => !tried.has(name.toString('latin1')));
    }
    return { left: this.left, named: this.named };
  }

  private async remove(folder: Buffer, entry: Dirent<Buffer>): Promise<void> {
    const place = below(folder, entry.name);
    if (!entry.isDirectory()) this.attempt(place, unlinkSync);
    else if (folder === this.top || !this.moveToTop(place)) {
      for (const inner of this.entriesIn(place)) await this.remove(place, inner);
      this.attempt(place, rmdirSync);
    }
    this.steps += 1;
    if (this.steps % this.setup.batch_files === 0) await wait(this.setup.pause_ms);
  }

  private moveToTop(folder: Buffer): boolean {
    try {
      renameSync(folder, below(this.top, Buffer.from(`drydock-${randomBytes(12).toString('hex')}`)));
      return true;
    } catch {
      return false;
    }
  }

  private entriesIn(folder: Buffer): Dirent<Buffer>[] {
    return this.attempt(folder, (place) => readdirSync(place, { encoding: 'buffer', withFileTypes: true })) ?? [];
  }

  /** An error is recorded, unless the path has gone or its own contents are the reason. */
  private attempt<T>(place: Buffer, work: (place: Buffer) => T): T | undefined {
    try {
      return work(place);
    } catch (error) {
      const code = errorCodeOf(error);
      if (code === 'ENOENT' || code === 'ENOTEMPTY') return undefined;
      this.left += 1;
      if (this.named.length < namedMost)
        this.named.push(`${code} ${place.subarray(this.top.length + 1, this.top.length + 201).toString()}`);
      return undefined;
    }
  }
}

const slash = Buffer.from('/');
const below = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, slash, name]);

runJobProgram(
  (setup) => new Emptying(setupSchema.parse(setup)).run(),
  () => null,
);
