import { appendFileSync } from 'node:fs';
import path from 'node:path';

export interface LedgerEntry {
  id: string;
  op: string;
  fence: string;
  workflow_id: string | null;
  outcome: 'accepted' | 'refused';
  /**
   * The starting point of the change, if the operation names one. A workflow may make the same change from one release,
   * and from another to take it back.
   */
  detail?: string;
  /** A digest of the request without its fence. A repeated request has the same digest. */
  digest: string;
}

/**
 * An append-only record of every change that was asked for, written before the change is made. Operators read it after
 * an incident.
 */
export class Ledger {
  private readonly file: string;
  private readonly thing: string;
  private readonly now: () => Date;

  /** `thing` is the name of the field before the id in each line: `site`, `database`. */
  constructor(folder: string, thing: string, now: () => Date) {
    this.file = path.join(folder, 'ledger.ndjson');
    this.thing = thing;
    this.now = now;
  }

  append({ id, ...entry }: LedgerEntry): void {
    const line = { time: this.now().toISOString(), [this.thing]: id, ...entry };
    // Synchronous, so that the lines are in the order of the decisions. A line is far shorter than what one write can
    // store at once.
    appendFileSync(this.file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }
}
