import path from 'node:path';
import { readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';
import { SerialQueue } from './serial-queue';

/** The first uid of each kind of tenant. `/etc/passwd` names none of these accounts. */
export const firstAccounts = { sites: 200_000, instances: 300_000 } as const;

const fileSchema = z.strictObject({ next_uid: z.int() });

/**
 * Gives each tenant a separate system account, whose uid is never used again. Only root can run a process under another
 * account. An agent that does not run as root can separate tenants only by boxes.
 */
export class Accounts {
  private readonly file: string;
  private readonly firstUid: number;
  private readonly queue = new SerialQueue();

  /** `folder` is the folder of the agent's own records. */
  constructor(folder: string, firstUid: number) {
    this.file = path.join(folder, 'accounts.json');
    this.firstUid = firstUid;
  }

  allocate(): Promise<number> {
    return this.queue.run(async () => {
      const text = await readIfThere(this.file);
      const uid = text === null ? this.firstUid : fileSchema.parse(JSON.parse(text)).next_uid;
      await writeDurably(this.file, `${JSON.stringify({ next_uid: uid + 1 })}\n`);
      return uid;
    });
  }
}
