import { appendFileSync } from 'node:fs';
import path from 'node:path';

export interface LedgerEntry {
  database: string;
  op: string;
  fence: string;
  workflow_id: string | null;
  outcome: 'accepted' | 'refused';
}

/** Append-only record of every change that was asked for, written before the change is made: what an operator reads after an incident. */
export class Ledger {
  private readonly file: string;
  private readonly now: () => Date;

  constructor(databasesDir: string, now: () => Date) {
    this.file = path.join(databasesDir, 'ledger.ndjson');
    this.now = now;
  }

  append(entry: LedgerEntry): void {
    // Synchronous, so that the order of lines is the order of decisions; a line is far below what one write puts down whole.
    appendFileSync(this.file, `${JSON.stringify({ time: this.now().toISOString(), ...entry })}\n`, { mode: 0o600 });
  }
}
