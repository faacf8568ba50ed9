import {
  type Attributes,
  type Context,
  type HrTime,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { tracing } from '@opentelemetry/sdk-node';
import { routineAttribute, streamAttribute } from './spans';

// Decides which traces are sent. The process in which a trace begins decides for all processes, and `traceparent` tells
// the other processes.
// - Every write of a customer is sent, and every workflow that is not routine.
// - A share of the reads, and of the routine work that schedules start, is sent.
// - The gateway decides about customers' reads (`request-traces.ts`). If a read that is not sent fails or is slow,
//   gateway and service each send one span of it.
// - Each process holds its spans of any other trace that is not sampled until its part of the trace has ended. It sends
//   the spans if something in its part failed or was slow, and otherwise drops them.
// - After a failure, the process tells the processes that it calls later, by `traceparent`, to send their parts. A
//   process that was called before the failure sends its part only if that part failed or was slow.

/**
 * The most traces whose spans are held. If there are more, the oldest are dropped. A read has 4 to 8 spans of about 2
 * kB.
 */
const heldTracesMax = 1_000;
const heldSpansMax = 4_000;
/** The most spans of one held trace. */
const spansMax = 100;
/**
 * The most traces that are remembered as sent although they were not sampled. Their ids are remembered because some of
 * their spans may not have ended yet.
 */
const keptMax = 1_000;

/** Methods of requests that change nothing. */
export const readMethods: ReadonlySet<unknown> = new Set(['GET', 'HEAD', 'OPTIONS']);

export interface SamplingOptions {
  /**
   * The share of customers' reads (in the gateway) and of the routine work of this process that is sent, from 0 to 1.
   */
  readShare: number;
  /** A request that takes longer than this many milliseconds is slow. Slow requests are sent. */
  slowMs: number;
}

export interface Sampling {
  sampler: tracing.Sampler;
  /** Makes the processor that gets every span. It gives `next` only the spans that are sent. */
  processor(next: tracing.SpanProcessor): tracing.SpanProcessor;
  /**
   * Must be called in the gateway, which makes a span of a request only if the span is sent. The sampler then accepts
   * every span that begins a trace. In any other process, a read or a delivery that begins a trace belongs to no
   * customer's request, and its spans are held.
   */
  beginsHere(): void;
}

export function createSampling({ readShare, slowMs }: SamplingOptions): Sampling {
  const held = new HeldTraces();
  const share = new tracing.TraceIdRatioBasedSampler(readShare);
  let isEntry = false;

  const isSent = (context: Context, traceId: string, kind: SpanKind, attributes: Attributes): boolean => {
    const parent = trace.getSpanContext(context);
    if (parent !== undefined && isSpanContextValid(parent))
      return (parent.traceFlags & TraceFlags.SAMPLED) !== 0 || held.isKept(traceId);
    const isRoutine = attributes[routineAttribute] === true;
    const isLook =
      kind === SpanKind.SERVER && (readMethods.has(attributes['http.request.method']) || isDelivery(attributes));
    if (isEntry || !(isRoutine || isLook)) return true;
    return isRoutine && share.shouldSample(context, traceId).decision === tracing.SamplingDecision.RECORD_AND_SAMPLED;
  };
  return {
    beginsHere: () => {
      isEntry = true;
    },
    sampler: {
      shouldSample: (context, traceId, _name, kind, attributes) => ({
        decision: isSent(context, traceId, kind, attributes)
          ? tracing.SamplingDecision.RECORD_AND_SAMPLED
          : tracing.SamplingDecision.RECORD,
      }),
      toString: () => `Drydock{reads=${readShare}}`,
    },
    processor: (next) => ({
      onStart: (span, context) => {
        if (!isSampled(span) && isLocalRoot(span)) held.begin(span.spanContext().traceId);
        next.onStart(span, context);
      },
      onEnd: (span) => {
        if (isSampled(span)) next.onEnd(span);
        else for (const each of held.end(span, hasFailed(span) || isSlow(span, slowMs))) next.onEnd(sampled(each));
      },
      forceFlush: () => next.forceFlush(),
      shutdown: () => next.shutdown(),
    }),
  };
}

/**
 * Whether a span is a call to an internal path. If such a call begins a trace, it is a delivery of events or audit
 * entries, which a timer starts. The requests that caused the entries have traces of their own.
 */
const isDelivery = ({ 'url.path': path, 'http.target': target }: Attributes): boolean =>
  String(path ?? target).startsWith('/internal/');

interface HeldTrace {
  /** The number of local root spans that have not ended. A trace may enter a process more than once at a time. */
  open: number;
  spans: tracing.ReadableSpan[];
}

/** The spans that are held until it is known whether their trace is sent. */
class HeldTraces {
  private readonly traces = new Map<string, HeldTrace>();
  private readonly kept = new Set<string>();
  private count = 0;

  /** Whether the trace is sent although it was not sampled. */
  isKept(traceId: string): boolean {
    return this.kept.has(traceId);
  }

  /** Records that a part of the trace begins in this process. */
  begin(traceId: string): void {
    const held = this.traces.get(traceId);
    if (held === undefined) this.traces.set(traceId, { open: 1, spans: [] });
    else held.open += 1;
    this.makeRoom();
  }

  /** Ends a span. Returns the spans that are sent now. */
  end(span: tracing.ReadableSpan, isWorthSending: boolean): tracing.ReadableSpan[] {
    const { traceId } = span.spanContext();
    if (isWorthSending) this.keep(traceId);
    const sent = this.isKept(traceId) ? [...this.take(traceId), span] : this.hold(traceId, span);
    if (isLocalRoot(span)) this.endPart(traceId);
    return sent;
  }

  private endPart(traceId: string): void {
    const held = this.traces.get(traceId);
    if (held === undefined) return;
    held.open -= 1;
    if (held.open === 0) this.forget(traceId);
  }

  private keep(traceId: string): void {
    this.kept.add(traceId);
    const [oldest = ''] = this.kept;
    if (this.kept.size > keptMax) this.kept.delete(oldest);
  }

  private hold(traceId: string, span: tracing.ReadableSpan): [] {
    const held = this.traces.get(traceId);
    if (held !== undefined && held.spans.length < spansMax) {
      held.spans.push(span);
      this.count += 1;
      this.makeRoom();
    }
    return [];
  }

  private take(traceId: string): tracing.ReadableSpan[] {
    const taken = this.traces.get(traceId)?.spans.splice(0) ?? [];
    this.count -= taken.length;
    return taken;
  }

  private forget(traceId: string): void {
    this.take(traceId);
    this.traces.delete(traceId);
  }

  private makeRoom(): void {
    for (const oldest of this.traces.keys()) {
      if (this.traces.size <= heldTracesMax && this.count <= heldSpansMax) return;
      this.forget(oldest);
    }
  }
}

const isSampled = (span: Pick<tracing.ReadableSpan, 'spanContext'>): boolean =>
  (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;

/** Whether the span begins a part of its trace in this process. */
const isLocalRoot = ({ parentSpanContext }: Pick<tracing.ReadableSpan, 'parentSpanContext'>): boolean =>
  parentSpanContext === undefined || parentSpanContext.isRemote === true;

/** Whether the span has failed. An answer of 4xx is a mistake of the caller and no failure. */
function hasFailed({ status, attributes }: tracing.ReadableSpan): boolean {
  const answered = Number(attributes['http.response.status_code'] ?? 0);
  return status.code === SpanStatusCode.ERROR && !(answered >= 400 && answered < 500);
}

const isSlow = (span: tracing.ReadableSpan, slowMs: number): boolean =>
  isLocalRoot(span) && span.attributes[streamAttribute] !== true && millisecondsOf(span.duration) > slowMs;

const millisecondsOf = ([seconds, nanoseconds]: HrTime): number => seconds * 1_000 + nanoseconds / 1_000_000;

/** The span, marked as sampled, because the batch processor skips all others. */
const sampled = (span: tracing.ReadableSpan): tracing.ReadableSpan =>
  Object.create(span, { spanContext: { value: () => ({ ...span.spanContext(), traceFlags: TraceFlags.SAMPLED }) } });
