import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

/**
 * A file with an emulator's state. The file is replaced in one step, so that a kill -9 leaves the old or the new state.
 */
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
  /** The entry's number. The numbers have no gaps. */
  seq: z.int(),
  time: z.string(),
  project: z.string(),
  /** The id of the server, VM or package, or `<bucket>/<key>` in S3. */
  resource: z.string(),
  op: z.string(),
  action_id: z.string(),
  /** Details of the change, such as its image or snapshot. */
  detail: z.string(),
  /**
   * Always "0", because providers have no fencing tokens. The field exists because all ledgers have the same schema.
   */
  fence: z.literal('0'),
  workflow_id: z.string().nullable(),
  outcome: z.literal('accepted'),
});
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;

/** The ledger lists the accepted changes. Tests compare the service's effects with it. */
export interface LedgerFile {
  append(entry: LedgerEntry): void;
  read(): LedgerEntry[];
}

/**
 * Opens a ledger. `last` is the newest entry in the state, or null if the state contains no entries. The state is
 * written before the ledger. If the emulator was killed between the two writes, the entry is appended here.
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
