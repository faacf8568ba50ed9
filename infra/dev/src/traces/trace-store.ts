import type { Span } from './otlp';

const tracesMax = 300;
/** The most spans, which take about 100 MB. */
const spansMax = 50_000;

/** A span, and the depth at which a waterfall shows it. */
export interface Row extends Span {
  depth: number;
  /**
   * True if the parent span was not received: it has not ended yet, or its process died before it sent the parent span.
   */
  isOrphan: boolean;
}

export interface Trace {
  traceId: string;
  /** The span that began first among those without a received parent. It is usually the root of the trace. */
  first: Span;
  startMs: number;
  durationMs: number;
  hasFailed: boolean;
  services: readonly string[];
  /** The spans in the order of a waterfall: each span after its parent, and siblings in the order of their start. */
  rows: readonly Row[];
}

export interface TraceStore {
  add(spans: readonly Span[]): void;
  get(traceId: string): Trace | undefined;
  /**
   * Finds the traces whose id is this text, or that have a span with an attribute of this value, for example the id of
   * a workflow, request or organisation. '' finds all traces. The newest traces come first.
   */
  find(text: string): Trace[];
}

/**
 * Creates a store that keeps the last few hundred traces in memory. A full store first drops traces of requests that
 * only read, and then other traces. In both groups it first drops the trace whose last span arrived longest ago.
 */
export function createTraceStore(): TraceStore {
  const traces = new Map<string, Span[]>();
  let count = 0;

  const add = (span: Span): void => {
    const spans = traces.get(span.traceId) ?? [];
    // A trace moves to the end of the map with each of its spans. So the map is ordered by the latest arrival.
    traces.delete(span.traceId);
    traces.set(span.traceId, spans);
    spans.push(span);
    count += 1;
  };
  const isFull = (): boolean => traces.size > tracesMax || count > spansMax;
  /** Drops traces while the store is full. Reads go first, because they are numerous and people look for changes. */
  const makeRoom = (): void => {
    if (!isFull()) return;
    const reads = [...traces].filter(([, spans]) => isRead(spans));
    for (const [traceId, spans] of [...reads, ...traces]) {
      if (!isFull()) return;
      if (traces.delete(traceId)) count -= spans.length;
    }
  };
  const holds = (traceId: string, spans: readonly Span[], text: string): boolean =>
    text === '' || traceId === text || spans.some(({ attributes }) => Object.values(attributes).includes(text));

  return {
    add: (spans) => {
      for (const span of spans) add(span);
      makeRoom();
    },
    get: (traceId) => {
      const spans = traces.get(traceId);
      return spans === undefined ? undefined : traceOf(traceId, spans);
    },
    find: (text) =>
      [...traces]
        .filter(([traceId, spans]) => holds(traceId, spans, text))
        .map(([traceId, spans]) => traceOf(traceId, spans))
        .sort((one, other) => other.startMs - one.startMs),
  };
}

/** Tells whether a trace is a request that only reads and did not fail. */
const isRead = (spans: readonly Span[]): boolean =>
  spans.every(({ hasFailed }) => !hasFailed) &&
  spans.some(({ parentSpanId, name }) => parentSpanId === undefined && /^(?:GET|HEAD|OPTIONS)\b/.test(name));

function traceOf(traceId: string, spans: readonly Span[]): Trace {
  const rows = inTreeOrder(spans);
  const [first] = rows;
  if (first === undefined) throw new Error('a trace has a span');
  const startMs = Math.min(...spans.map((span) => span.startMs));
  return {
    traceId,
    first,
    startMs,
    durationMs: Math.max(...spans.map((span) => span.startMs + span.durationMs)) - startMs,
    hasFailed: spans.some(({ hasFailed }) => hasFailed),
    services: [...new Set(rows.map(({ service }) => service))],
    rows,
  };
}

/**
 * Orders spans as a tree, each directly below its parent. A span whose parent is missing becomes a root, so that no
 * span is lost.
 */
export function inTreeOrder(spans: readonly Span[]): Row[] {
  const known = new Set(spans.map(({ spanId }) => spanId));
  const below = new Map<string, Span[]>();
  for (const span of [...spans].sort((one, other) => one.startMs - other.startMs)) {
    const parent = span.parentSpanId !== undefined && known.has(span.parentSpanId) ? span.parentSpanId : '';
    below.set(parent, [...(below.get(parent) ?? []), span]);
  }
  const rows: Row[] = [];
  const open = (below.get('') ?? []).map((span) => ({ span, depth: 0 })).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { span, depth } = next;
    rows.push({ ...span, depth, isOrphan: depth === 0 && span.parentSpanId !== undefined });
    for (const child of (below.get(span.spanId) ?? []).reverse()) open.push({ span: child, depth: depth + 1 });
  }
  return rows;
}
