import path from 'node:path';
import { readIfThere, writeDurably } from '@drydock/host-kit/durable-file';
import { SerialQueue } from '@drydock/host-kit/serial-queue';
import { z } from 'zod';

const firstUid = 200_000;
const fileSchema = z.strictObject({ next_uid: z.int().min(firstUid) });

/** As root every site has an account of its own (a number; no name is needed), never used again. As anybody else there is only one account: null. */
export class Accounts {
  private readonly file: string;
  private readonly isRoot: boolean;
  private readonly queue = new SerialQueue();

  constructor(sitesDir: string) {
    this.file = path.join(sitesDir, 'accounts.json');
    this.isRoot = process.getuid?.() === 0;
  }

  allocate(): Promise<number | null> {
    if (!this.isRoot) return Promise.resolve(null);
    return this.queue.run(async () => {
      const text = await readIfThere(this.file);
      const uid = text === null ? firstUid : fileSchema.parse(JSON.parse(text)).next_uid;
      await writeDurably(this.file, `${JSON.stringify({ next_uid: uid + 1 })}\n`);
      return uid;
    });
  }
}
