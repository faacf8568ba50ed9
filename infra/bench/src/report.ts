export interface Row {
  what: string;
  ours: string;
  peer: string;
  peerValue: string;
  /** How many times better Drydock is than the peer, or than the goal allows. A higher ratio is better in every row. */
  ratio: number;
  /** The goal for the ratio. Undefined for a row without a goal. */
  bar?: number;
}

const verdict = (row: Row): string => {
  if (row.bar === undefined) return '';
  return row.ratio >= row.bar ? `ok (bar ${row.bar})` : `MISSED (bar ${row.bar})`;
};

/** Prints a table in Markdown, which can be copied into docs/benchmarks.md. */
export function printRows(title: string, rows: readonly Row[], note = ''): void {
  const lines = [`### ${title}`, '', '| what | ours | peer | peer | ratio | |', '|---|---|---|---|---|---|'];
  for (const row of rows) {
    lines.push(
      `| ${row.what} | ${row.ours} | ${row.peer} | ${row.peerValue} | ${row.ratio.toFixed(2)} | ${verdict(row)} |`,
    );
  }
  process.stdout.write(`${lines.join('\n')}\n${note === '' ? '' : `\n${note}\n`}\n`);
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`);
