import type { Change } from './control-protocol';
import type { Ledger } from './ledger';
import { SerialQueue } from './serial-queue';

/** Every change of a host goes through here: those of one thing one after the other, each admitted first, and a line in the ledger either way. */
export class Changes {
  private readonly ledger: Ledger;
  private readonly queues = new Map<string, SerialQueue>();

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /** `admit` throws for a change that is not let in (`stale_fence`), and resolves with the work of one that is. Throws what either throws. */
  run<T>(id: string, op: string, { fence, workflow_id }: Change, admit: () => Promise<() => Promise<T>>): Promise<T> {
    return this.inTurn(id, async () => {
      const entry = { id, op, fence, workflow_id: workflow_id ?? null };
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
