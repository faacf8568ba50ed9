import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

/** The file is replaced in one step: after a kill -9 it holds the state before a change or the state after it. */
export interface StateFile<State> {
  read(fallback: () => State): State;
  write(state: State): void;
}

export function openStateFile<State>(stateDir: string, schema: z.ZodType<State>): StateFile<State> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const file = path.join(stateDir, 'state.json');
  return {
    read: (fallback) => (existsSync(file) ? schema.parse(JSON.parse(readFileSync(file, 'utf8'))) : fallback()),
    write: (state) => {
      writeFileSync(`${file}.new`, JSON.stringify(state), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
  };
}

export const ledgerEntrySchema = z.strictObject({
  /** Counts up without gaps. The state holds the last number. */
  seq: z.int(),
  time: z.string(),
  project: z.string(),
  /** Id of the server or VM. */
  resource: z.string(),
  op: z.string(),
  action_id: z.string(),
  /** The image or snapshot of the change. */
  detail: z.string(),
  /** Providers have no fences. It is always "0", so that all ledgers can be read with one schema. */
  fence: z.literal('0'),
  workflow_id: z.string().nullable(),
  outcome: z.literal('accepted'),
});
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;

/**
 * The changes that were really accepted, and nothing else. Tests compare the service's effects with them. An entry is
 * written after the state that holds the newest entry.
 */
export interface LedgerFile {
  append(entry: LedgerEntry): void;
  read(): LedgerEntry[];
}

/**
 * `last` is the newest entry according to the state. It is added here when the emulator's process died between writing
 * the state and the ledger.
 */
export function openLedger(stateDir: string, last: LedgerEntry | null): LedgerFile {
  const file = path.join(stateDir, 'ledger.ndjson');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole !== text) truncateSync(file, Buffer.byteLength(whole));
  const append = (entry: LedgerEntry): void => appendFileSync(file, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
  const read = (): LedgerEntry[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => ledgerEntrySchema.parse(JSON.parse(line)))
      : [];
  if (last !== null && (read().at(-1)?.seq ?? 0) < last.seq) append(last);
  return { append, read };
}
