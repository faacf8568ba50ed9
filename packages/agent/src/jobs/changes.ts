import { createHash } from 'node:crypto';
import type { Change, ChangeName } from '../control/control-protocol';
import { SerialQueue } from '../host/serial-queue';
import type { Ledger } from './ledger';

/** The schemas put the fields into one order, so that equal requests have equal text. */
const digestOf = (asked: object): string =>
  createHash('sha256').update(JSON.stringify(asked)).digest('base64url').slice(0, 16);

/**
 * Every change on a host goes through here. Changes of one thing run one after the other. Each is first admitted, and
 * each leaves a line in the ledger, whether it succeeds or fails.
 */
export class Changes {
  private readonly ledger: Ledger;
  private readonly queues = new Map<string, SerialQueue>();

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /**
   * `admit` resolves with the work of the change, or throws when the change is not admitted (`stale_fence`). Throws
   * whatever `admit` or the work throws.
   */
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

  /** Work of the host itself, between two changes of the thing. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const queue = this.queues.get(id) ?? new SerialQueue();
    this.queues.set(id, queue);
    return queue.run(work);
  }

  /** Resolves when every change that was asked for before this call has ended. */
  async settle(): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.run(() => Promise.resolve())));
  }
}
