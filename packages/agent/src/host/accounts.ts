import path from 'node:path';
import { readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';
import { SerialQueue } from './serial-queue';

/** The first account number of each kind of tenant. None of these accounts has a name. */
export const firstAccounts = { sites: 200_000, instances: 300_000 } as const;

const fileSchema = z.strictObject({ next_uid: z.int() });

/**
 * Gives each tenant a separate system account. The number of an account is never used again. Only root can run a
 * process under such an account. A host that runs as another user separates tenants by boxes, without these accounts.
 */
export class Accounts {
  private readonly file: string;
  private readonly firstUid: number;
  private readonly queue = new SerialQueue();

  /** `folder` is the host's own folder. */
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
