import { createHash } from 'node:crypto';
import type { Change } from '../control/control-protocol';
import { SerialQueue } from '../host/serial-queue';
import type { Ledger } from './ledger';

/** As the ledger names a change. `detail` is what it begins from, such as the release that is to be replaced. */
export interface ChangeName {
  op: string;
  detail?: string | undefined;
}

/** Schemas put the fields in one order, so that equal requests have equal text. */
const digestOf = (asked: object): string => createHash('sha256').update(JSON.stringify(asked)).digest('base64url').slice(0, 16);

/** Every change of a host goes through here: those of one thing one after the other, each admitted first, and a line in the ledger either way. */
export class Changes {
  private readonly ledger: Ledger;
  private readonly queues = new Map<string, SerialQueue>();

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /** `admit` throws for a change that is not let in (`stale_fence`), and resolves with the work of one that is. Throws what either throws. */
  run<T>(id: string, { op, detail }: ChangeName, change: Change, admit: () => Promise<() => Promise<T>>): Promise<T> {
    return this.inTurn(id, async () => {
      const { fence, workflow_id, ...asked } = change;
      const about = { ...(detail === undefined ? {} : { detail }), digest: digestOf(asked) };
      const entry = { id, op, fence, workflow_id: workflow_id ?? null, ...about };
      let work: () => Promise<T>;
      try {
        work = await admit();
      } catch (error) {
        this.ledger.append({ ...entry, outcome: 'refused' });
        throw error;
      }
      this.ledger.append({ ...entry, outcome: 'accepted' });
      return work();
    });
  }

  /** Work of the host's own, between two changes of the thing. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const queue = this.queues.get(id) ?? new SerialQueue();
    this.queues.set(id, queue);
    return queue.run(work);
  }

  /** Resolves when every change that was asked for before has ended. */
  async settle(): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.run(() => Promise.resolve())));
  }
}
