import type pg from 'pg';
import { type Copied, copyIn } from '../dump/copy-table';
import type { DumpManifest, Section, SequenceEntry, TableEntry, TablesFile } from '../dump/dump-format';
import { qualify } from '../dump/list-tables';
import type { TimeBudget } from '../session/time-budget';
import { asTransferError, TransferError } from '../session/transfer-error';

export interface LoadProgress {
  tablesLoaded: number;
  tablesTotal: number;
  bytesLoaded: number;
}

/**
 * Fills the tables over as many connections as `lanes`. A section is requested while earlier sections are still read.
 * The first error is thrown at once. The caller then closes the sessions, which ends the remaining copies.
 */
export async function loadTables(options: {
  tables: TableEntry[];
  /** The table that receives the rows of a leaf below a hash partitioning (see `hashRoots`). */
  roots: ReadonlyMap<string, string>;
  lanes: readonly number[];
  /** Returns the client that fills a table in a lane. */
  clientOf: (table: string, lane: number) => Promise<pg.Client>;
  budget: TimeBudget;
  nextSection: (index: number) => Promise<Section>;
  onProgress: (progress: LoadProgress) => void;
}): Promise<Copied[]> {
  const { tables, roots, budget, clientOf, nextSection, onProgress } = options;
  const idle = [...options.lanes];
  const running = new Set<Promise<void>>();
  const copied: Copied[] = [];
  const progress: LoadProgress = { tablesLoaded: 0, tablesTotal: tables.length, bytesLoaded: 0 };
  let fail: (error: unknown) => void = () => undefined;
  const failure = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failure.catch(() => undefined);

  const copyOne = async (lane: number, index: number, table: TableEntry, section: Section): Promise<void> => {
    const onBytes = (bytes: number): void => {
      progress.bytesLoaded += bytes;
    };
    const root = roots.get(qualify(table));
    const client = await clientOf(root ?? qualify(table), lane);
    copied[index] = await copyIn(client, table, section, { onBytes, budget, root });
    progress.tablesLoaded++;
    onProgress({ ...progress });
    idle.push(lane);
  };

  for (const [index, table] of tables.entries()) {
    const section = await Promise.race([failure, nextSection(index)]);
    while (idle.length === 0) await Promise.race([failure, ...running]);
    const lane = idle.pop();
    if (lane === undefined) throw new Error('no connection although one was idle');
    const task: Promise<void> = copyOne(lane, index, table, section)
      .catch(fail)
      .finally(() => running.delete(task));
    running.add(task);
  }
  // A failed task resolves after it has rejected `failure`. So both promises may be settled here, and the first one in
  // the array wins.
  await Promise.race([failure, Promise.all(running)]);
  return copied;
}

/** Compares the counts of the manifest with the loaded rows. Throws `counts_differ`. */
export function compareCounts(head: TablesFile, manifest: DumpManifest, copied: Copied[], largeObjects: number): void {
  const isSame = manifest.tables.length === head.tables.length && manifest.large_objects === largeObjects;
  const wrong = manifest.tables.findIndex(
    (table, index) => table.rows !== copied[index]?.rows || table.name !== head.tables[index]?.name,
  );
  if (!isSame || wrong >= 0)
    throw new TransferError('counts_differ', `the manifest differs from what was loaded at table ${wrong}`);
}

/** Sets the value of each sequence. `clientOf` returns the client of the sequence's owner. */
export async function loadSequences(
  sequences: readonly SequenceEntry[],
  clientOf: (sequence: string) => Promise<pg.Client>,
): Promise<void> {
  for (const entry of sequences) {
    const name = qualify(entry);
    const object = `sequence ${name}`;
    const client = await clientOf(name);
    await client
      .query('select pg_catalog.setval($1::regclass, $2::bigint, $3::boolean)', [
        name,
        entry.last_value,
        entry.is_called,
      ])
      .catch((error: unknown) => {
        throw asTransferError('statement_failed', object, error, { object });
      });
  }
}
