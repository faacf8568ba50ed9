import type pg from 'pg';
import { baseColumn, hashComputed } from '../dump/computed-columns';
import type { ComputedColumns, DumpManifest } from '../dump/dump-format';
import { hashRoots, qualify, quoteName } from '../dump/list-tables';
import { asTransferError, isPermanent } from '../session/transfer-error';
import type { LoadFinding } from './load-request';

interface Sums {
  dumped: bigint;
  loaded: bigint;
}

/** The sums of a table. Hash partitions share one entry, because a load may put a row into another partition. */
interface Table {
  written: Sums;
  columns: Map<string, Sums>;
  /** Why the values could not be read, or null. */
  unknown: string | null;
}

const none = (): Sums => ({ dumped: 0n, loaded: 0n });
const differs = ({ dumped, loaded }: Sums): boolean => dumped !== loaded;

/** Compares the dumped sums of generated columns with those after a load, which computes the columns again. */
class ComputedComparison {
  private readonly tables = new Map<string, Table>();

  /** Adds a table's sums. `name` is quoted and qualified. */
  add(name: string, dumped: ComputedColumns, loaded: ComputedColumns): void {
    const { written, columns } = this.of(name, dumped);
    written.dumped += BigInt(dumped.written);
    written.loaded += BigInt(loaded.written);
    for (const [index, { name: column, hash }] of dumped.columns.entries()) {
      const sums = columns.get(column);
      if (sums === undefined) continue;
      sums.dumped += BigInt(hash);
      sums.loaded += BigInt(loaded.columns[index]?.hash ?? 0);
    }
  }

  skip(name: string, dumped: ComputedColumns, error: unknown): void {
    this.of(name, dumped).unknown = error instanceof Error ? error.message : String(error);
  }

  /**
   * Returns findings for the columns that differ or could not be compared. `baseOf` returns a column that a generated
   * column depends on.
   */
  async findings(baseOf: (table: string, column: string) => Promise<string | null>): Promise<LoadFinding[]> {
    const findings: LoadFinding[] = [];
    for (const [name, { written, columns, unknown }] of this.tables) {
      const isUncertain = unknown !== null || differs(written);
      const why = isUncertain
        ? `it could not be compared with what the backup had (${unknown ?? 'the other columns read otherwise here'})`
        : 'its expression gives other values now than the backup had';
      for (const [column, sums] of columns) {
        if (!isUncertain && !differs(sums)) continue;
        const base = await baseOf(name, column);
        const [place, from] = [quoteName(column), quoteName(base ?? '')];
        const remedy = base === null ? 'make the column anew' : `run: UPDATE ${name} SET ${from} = ${from}`;
        const reason = `${why}. If that is not meant, mend what it calls, then ${remedy}`;
        findings.push({ kind: 'recomputed', object: `column ${name}.${place}`, reason });
      }
    }
    return findings;
  }

  private of(name: string, dumped: ComputedColumns): Table {
    const known = this.tables.get(name);
    if (known !== undefined) return known;
    const table = {
      written: none(),
      columns: new Map(dumped.columns.map((column) => [column.name, none()])),
      unknown: null,
    };
    this.tables.set(name, table);
    return table;
  }
}

/**
 * Compares the generated columns of the loaded tables. `run` calls `work` with a session of the table's owner. Throws
 * {@link TransferError}.
 */
export async function compareComputed(
  client: pg.Client,
  tables: DumpManifest['tables'],
  run: (table: string, work: (client: pg.Client) => Promise<void>) => Promise<void>,
): Promise<LoadFinding[]> {
  const roots = await hashRoots(client);
  const comparison = new ComputedComparison();
  for (const { computed, ...table } of tables) {
    if (computed === undefined) continue;
    const name = qualify(table);
    const whole = roots.get(name) ?? name;
    const columns = computed.columns.map((column) => column.name);
    const object = `table ${name}`;
    try {
      await run(name, async (session) => comparison.add(whole, computed, await hashComputed(session, table, columns)));
    } catch (error) {
      if (!isPermanent(error)) throw asTransferError('statement_failed', object, error, { object });
      comparison.skip(whole, computed, error);
    }
  }
  return comparison.findings((table, column) => baseColumn(client, table, column));
}
