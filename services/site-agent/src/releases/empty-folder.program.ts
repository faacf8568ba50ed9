import { randomBytes } from 'node:crypto';
import { type Dir, type Dirent, opendirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { runJobProgram } from '@drydock/agent/jobs';
import { errorCodeOf } from '@drydock/process';
import { z } from 'zod';

const setupSchema = z.strictObject({
  dir: z.string(),
  batch_files: z.int().min(1),
  pause_ms: z.int().min(0),
  /** The number of removals after which the program stops, so that other folders get their turn. */
  turn_files: z.int().min(1),
});
/** With this encoding Node gives names as Buffers. Node's types do not have it. */
const asBytes = 'buffer' as BufferEncoding;

/** The most paths that the result names, each with its error. */
const namedMost = 10;

/**
 * Removes everything that it can from a folder, slowly, and reports what is left. Names are handled as bytes, because
 * they need not be UTF-8. A nested folder is first moved to the top, so that paths stay short however deep the tree is;
 * if it cannot be moved, it is emptied in its place. A folder is emptied while it is read, because it may have more
 * names than fit into memory. In a box, the program sees no other folder, so no link in the tree leads to other files.
 */
class Emptying {
  private readonly top: Buffer;
  private readonly setup: z.infer<typeof setupSchema>;
  private named: string[] = [];
  private left = 0;
  private gone = 0;
  private steps = 0;

  constructor(setup: z.infer<typeof setupSchema>) {
    this.setup = setup;
    this.top = Buffer.from(setup.dir);
  }

  /** `isOver` is true if the program has made `turn_files` removals. The folder may then still have contents. */
  async run(): Promise<{ left: number; named: string[]; isOver: boolean }> {
    // Entries that come while a folder is read may be missed, so the folder is read again until nothing more can be
    // removed.
    for (let before = -1; before < this.gone && !this.isOver; ) {
      before = this.gone;
      [this.left, this.named] = [0, []];
      await this.empty(this.top);
    }
    return { left: this.left, named: this.named, isOver: this.isOver };
  }

  private get isOver(): boolean {
    return this.gone >= this.setup.turn_files;
  }

  private async empty(folder: Buffer): Promise<void> {
    for (const entry of this.entriesIn(folder)) {
      await this.remove(folder, entry);
      if (this.isOver) return;
    }
  }

  private async remove(folder: Buffer, entry: Dirent<Buffer>): Promise<void> {
    const place = below(folder, entry.name);
    if (!entry.isDirectory()) this.attempt(place, unlinkSync);
    else if (folder === this.top || !this.moveToTop(place)) {
      await this.empty(place);
      this.attempt(place, rmdirSync);
    }
    this.steps += 1;
    if (this.steps % this.setup.batch_files === 0) await wait(this.setup.pause_ms);
  }

  private moveToTop(folder: Buffer): boolean {
    try {
      renameSync(folder, below(this.top, Buffer.from(`drydock-${randomBytes(12).toString('hex')}`)));
      this.gone += 1;
      return true;
    } catch {
      return false;
    }
  }

  private *entriesIn(folder: Buffer): Generator<Dirent<Buffer>> {
    let open: Dir | undefined;
    try {
      open = opendirSync(folder, { encoding: asBytes, bufferSize: 256 });
      for (let entry = open.readSync(); entry !== null; entry = open.readSync())
        yield entry as unknown as Dirent<Buffer>;
    } catch (error) {
      this.note(folder, error);
    } finally {
      open?.closeSync();
    }
  }

  private attempt(place: Buffer, work: (place: Buffer) => void): void {
    try {
      work(place);
      this.gone += 1;
    } catch (error) {
      this.note(place, error);
    }
  }

  /** Records an error, unless the path has gone, or is a folder that still has contents. */
  private note(place: Buffer, error: unknown): void {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTEMPTY') return;
    this.left += 1;
    if (this.named.length < namedMost)
      this.named.push(`${code} ${place.subarray(this.top.length + 1, this.top.length + 201).toString()}`);
  }
}

const slash = Buffer.from('/');
const below = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, slash, name]);

runJobProgram(
  (setup) => new Emptying(setupSchema.parse(setup)).run(),
  () => null,
);
