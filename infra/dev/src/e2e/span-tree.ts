import type { Span } from '../traces/otlp';
import { inTreeOrder, type Row } from '../traces/trace-store';

interface Line {
  depth: number;
  text: string;
}

const clientKind = 3;
/**
 * The gateway's call that checks a key. The gateway keeps the answer for a second, so not every trace has this call.
 */
const verifyName = 'POST /internal/verify';

const isShown = ({ kind, name, attributes, depth }: Row): boolean =>
  attributes['db.query.text'] === undefined &&
  kind !== clientKind &&
  name !== verifyName &&
  (depth < 3 || !name.startsWith('GET'));

/**
 * Returns the trace as lines of `process: name`, indented by depth. A call between two processes of Drydock is one
 * line, that of the called process. Spans that vary between runs are left out: SQL statements, reads within other work,
 * and wake-ups that found nothing to do. The spans of the process `deadPid` are left out too, because the process may
 * have died before it sent them.
 */
export function spanTree(spans: readonly Span[], deadPid: string): string[] {
  const lines = inShownDepth(alive(inTreeOrder(spans), deadPid));
  return withoutIdleJobs(merged(lines)).map(({ depth, text }) => `${'  '.repeat(depth)}${text}`);
}

/** Leaves out the spans of the dead process and spans whose parent was not received, with all spans below them. */
function alive(rows: readonly Row[], deadPid: string): Row[] {
  let deadDepth = Number.POSITIVE_INFINITY;
  return rows.filter((row) => {
    if (row.depth <= deadDepth) deadDepth = row.pid === deadPid || row.isOrphan ? row.depth : Number.POSITIVE_INFINITY;
    return row.depth < deadDepth;
  });
}

/** Returns the lines that are shown. Each is one level deeper than its nearest ancestor that is shown. */
function inShownDepth(rows: readonly Row[]): Line[] {
  const around: { depth: number }[] = [];
  return rows.flatMap((row) => {
    while ((around.at(-1)?.depth ?? -1) >= row.depth) around.pop();
    if (!isShown(row)) return [];
    return [{ depth: around.push({ depth: row.depth }) - 1, text: `${row.service}: ${row.name}` }];
  });
}

/**
 * Leaves out a line that already stands below the same parent, because a wake-up may be delivered twice. The second
 * delivery does nothing.
 */
function merged(lines: readonly Line[]): Line[] {
  const seen = new Set<string>();
  const way: string[] = [];
  return lines.filter(({ depth, text }) => {
    way.length = depth;
    way[depth] = text;
    return seen.size < seen.add(way.join('\n')).size;
  });
}

function withoutIdleJobs(lines: readonly Line[]): Line[] {
  const kept: Line[] = [];
  for (const line of [...lines].reverse()) {
    const isIdle = /: (?:add|process) /.test(line.text) && (kept.at(-1)?.depth ?? 0) <= line.depth;
    if (!isIdle) kept.push(line);
  }
  return kept.reverse();
}
