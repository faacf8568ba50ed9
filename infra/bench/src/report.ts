export interface Row {
  what: string;
  ours: string;
  peer: string;
  peerValue: string;
  /** More is better for us, whatever the unit: how many times better than the peer. */
  ratio: number;
  /** The ratio that the issue asks for; undefined where the row is for orientation. */
  bar?: number;
}

const verdict = (row: Row): string => {
  if (row.bar === undefined) return '';
  return row.ratio >= row.bar ? `ok (bar ${row.bar})` : `MISSED (bar ${row.bar})`;
};

/** A table in Markdown, so that it can stand in docs/benchmarks.md as it was printed. */
export function printRows(title: string, rows: readonly Row[], note = ''): void {
  const lines = [`### ${title}`, '', '| what | ours | peer | peer | ratio | |', '|---|---|---|---|---|---|'];
  for (const row of rows) {
    lines.push(`| ${row.what} | ${row.ours} | ${row.peer} | ${row.peerValue} | ${row.ratio.toFixed(2)} | ${verdict(row)} |`);
  }
  process.stdout.write(`${lines.join('\n')}\n${note === '' ? '' : `\n${note}\n`}\n`);
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`);
