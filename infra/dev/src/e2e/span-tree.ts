import type { Span } from '../traces/otlp';
import { inTreeOrder, type Row } from '../traces/trace-store';

interface Line {
  depth: number;
  text: string;
}

const clientKind = 3;
/** The gateway keeps the answer to this call for a second. Not every request has the call, so the tree hides it. */
const verifyName = 'POST /internal/verify';

const isShown = ({ kind, name, attributes, depth }: Row): boolean =>
  attributes['db.query.text'] === undefined &&
  kind !== clientKind &&
  name !== verifyName &&
  (depth < 3 || !name.startsWith('GET'));

/**
 * Returns the trace as lines of `process: name`, indented by depth. Lines that vary between runs are left out: reads,
 * jobs that found nothing to do, and spans that the process of `deadPid` started, because that process may have died
 * before it sent the spans. A call between two processes of Drydock shows only the called process.
 */
export function spanTree(spans: readonly Span[], deadPid: string): string[] {
  const lines = inShownDepth(alive(inTreeOrder(spans), deadPid));
  return withoutIdleJobs(merged(lines)).map(({ depth, text }) => `${'  '.repeat(depth)}${text}`);
}

/** Leaves out the spans of the dead process, and all spans below them. */
function alive(rows: readonly Row[], deadPid: string): Row[] {
  let deadDepth = Number.POSITIVE_INFINITY;
  return rows.filter((row) => {
    if (row.depth <= deadDepth) deadDepth = row.pid === deadPid || row.isOrphan ? row.depth : Number.POSITIVE_INFINITY;
    return row.depth < deadDepth;
  });
}

/** Returns the shown lines, each one level deeper than its nearest shown ancestor. */
function inShownDepth(rows: readonly Row[]): Line[] {
  const around: { depth: number }[] = [];
  return rows.flatMap((row) => {
    while ((around.at(-1)?.depth ?? -1) >= row.depth) around.pop();
    if (!isShown(row)) return [];
    return [{ depth: around.push({ depth: row.depth }) - 1, text: `${row.service}: ${row.name}` }];
  });
}

/**
 * Shows equal lines below the same line once, because a job may be delivered twice, and the second delivery does
 * nothing.
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
