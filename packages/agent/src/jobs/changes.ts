import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { readIfThere, writeDurably } from '@drydock/process';
import { type Change, type ChangeName, HostError } from '../control/control-protocol';
import { SerialQueue } from '../host/serial-queue';

/** Returns a digest of a request. The schemas put the fields into one order, so equal requests have equal text. */
const digestOf = (asked: object): string =>
  createHash('sha256').update(JSON.stringify(asked)).digest('base64url').slice(0, 16);

/**
 * Runs every change of an agent. Changes of the same site or database run one after the other. Before the work of a
 * change begins, the change is admitted or refused, and the ledger records that decision in one line.
 */
export class Changes {
  private readonly ledger: Ledger;
  private readonly queues = new Map<string, SerialQueue>();

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /**
   * Runs a change. `admit` resolves with the work of the change, or throws if it is not admitted (`stale_fence`).
   * Errors of `admit` and of the work are thrown unchanged.
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

  /** Runs work that is no change, such as the agent's own work, between two changes of the same site or database. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const queue = this.queues.get(id) ?? new SerialQueue();
    this.queues.set(id, queue);
    return queue.run(work);
  }

  /** Resolves when every change that was requested before this call has ended. */
  async settle(): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.run(() => Promise.resolve())));
  }
}

export interface LedgerEntry {
  id: string;
  op: string;
  fence: string;
  workflow_id: string | null;
  outcome: 'accepted' | 'refused';
  /** See {@link ChangeName}. */
  detail?: string;
  /** A digest of the request without fence and workflow. A repeated request has the same digest. */
  digest: string;
}

/**
 * An append-only record of the changes that were admitted or refused. A line is written before its change is made.
 * Operators read the ledger after an incident.
 */
export class Ledger {
  private readonly file: string;
  private readonly thing: string;
  private readonly now: () => Date;

  /** `thing` is the name of the field that has the id in each line: `site` or `database`. */
  constructor(folder: string, thing: string, now: () => Date) {
    this.file = path.join(folder, 'ledger.ndjson');
    this.thing = thing;
    this.now = now;
  }

  append({ id, ...entry }: LedgerEntry): void {
    const line = { time: this.now().toISOString(), [this.thing]: id, ...entry };
    // The write is synchronous, so that the lines are in the order of the decisions. A line is short enough to be
    // stored in one write.
    appendFileSync(this.file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }
}

/** Returns the highest fence that was admitted, or 0 if there was none. */
async function readFence(file: string): Promise<bigint> {
  const text = await readIfThere(file);
  return text === null ? 0n : BigInt(text.trim());
}

/** Throws `stale_fence` if the fence is older than the newest admitted fence. Returns whether the fence is newer. */
export async function refuseStale(file: string, fence: string): Promise<boolean> {
  const highest = await readFence(file);
  const claimed = BigInt(fence);
  if (claimed < highest) throw new HostError('stale_fence', `fence ${fence} is older than ${highest}`);
  return claimed > highest;
}

export const rememberFence = (file: string, fence: string): Promise<void> => writeDurably(file, `${BigInt(fence)}\n`);

/**
 * Admits a fence unless a newer fence was admitted, and writes the fence to disk before the change begins. So a frozen
 * worker that wakes up late can change nothing, even after a restart of this process. Throws `stale_fence`.
 */
export async function admitFence(file: string, fence: string): Promise<void> {
  if (await refuseStale(file, fence)) await rememberFence(file, fence);
}
