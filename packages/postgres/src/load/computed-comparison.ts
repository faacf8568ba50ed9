import { quoteName } from '../dump/list-tables';
import type { ComputedColumns } from '../dump/manifest';
import type { LoadFinding } from './load-database';

interface Sums {
  dumped: bigint;
  loaded: bigint;
}

/** Of one table, or of all partitions among which rows may have found other places than before. */
interface Table {
  written: Sums;
  columns: Map<string, Sums>;
  /** Why its values could not be read. */
  unknown: string | null;
}

const none = (): Sums => ({ dumped: 0n, loaded: 0n });
const differs = ({ dumped, loaded }: Sums): boolean => dumped !== loaded;

/** What generated columns held when they were dumped, and what they hold now that they were computed anew. */
export class ComputedComparison {
  private readonly tables = new Map<string, Table>();

  /** `name`: quoted and qualified. */
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

  /** `baseOf`: a column that the generated one of a table is computed from. */
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
    const table = { written: none(), columns: new Map(dumped.columns.map((column) => [column.name, none()])), unknown: null };
    this.tables.set(name, table);
    return table;
  }
}
