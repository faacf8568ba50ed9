import { randomBytes } from 'node:crypto';
import { type Dirent, lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { runJobProgram } from '@drydock/agent/jobs/job-program';
import { z } from 'zod';

const setupSchema = z.strictObject({ dir: z.string(), batch_files: z.int().min(1), pause_ms: z.int().min(0) });

/**
 * Empties a folder, slowly. Names are bytes. A folder that is met below another one is moved to the top first, so that no path is ever longer than two names, however
 * deep the tree was. It runs in the box of the site whose files they are: nothing in the tree leads anywhere else.
 */
class Emptying {
  private readonly top: Buffer;
  private readonly setup: z.infer<typeof setupSchema>;
  private removed = 0;

  constructor(setup: z.infer<typeof setupSchema>) {
    this.setup = setup;
    this.top = Buffer.from(setup.dir);
  }

  async run(): Promise<{ removed: number }> {
    for (let names = this.namesIn(this.top); names.length > 0; names = this.namesIn(this.top)) {
      for (const name of names) {
        const place = below(this.top, name);
        if (lstatSync(place).isDirectory()) await this.removeFolder(place);
        else unlinkSync(place);
        await this.pace();
      }
    }
    return { removed: this.removed };
  }

  private async removeFolder(folder: Buffer): Promise<void> {
    for (const entry of entriesIn(folder)) {
      const place = below(folder, entry.name);
      if (entry.isDirectory()) renameSync(place, below(this.top, Buffer.from(`drydock-${randomBytes(12).toString('hex')}`)));
      else unlinkSync(place);
      await this.pace();
    }
    rmdirSync(folder);
  }

  private namesIn(folder: Buffer): Buffer[] {
    return readdirSync(folder, { encoding: 'buffer' });
  }

  private async pace(): Promise<void> {
    this.removed += 1;
    if (this.removed % this.setup.batch_files === 0) await wait(this.setup.pause_ms);
  }
}

const slash = Buffer.from('/');
const below = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, slash, name]);

function entriesIn(folder: Buffer): Dirent<Buffer>[] {
  return readdirSync(folder, { encoding: 'buffer', withFileTypes: true });
}

runJobProgram(
  (setup) => new Emptying(setupSchema.parse(setup)).run(),
  () => null,
);
