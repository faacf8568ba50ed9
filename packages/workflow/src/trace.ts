import { type Attributes, type Context, context, ROOT_CONTEXT, type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import { StepFailure } from './step-error';

const tracer = trace.getTracer('@drydock/workflow');
const traceparentForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The context that a row's `traceparent` names; the root when it has none or nonsense. */
function contextOfTraceparent(traceparent: string | null): Context {
  const [, traceId, spanId, flags] = traceparentForm.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true });
}

/** The id of the trace that a `traceparent` belongs to. */
export const traceIdOf = (traceparent: string | null): string | null => traceparentForm.exec(traceparent ?? '')?.[1] ?? null;

/** The W3C form of the span that is active here; undefined while tracing is off. */
export function activeTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !trace.isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}

/** Runs `work` in the trace of the row, whoever rang for it. */
export const inTraceOf = <T>(traceparent: string | null, work: () => T): T => context.with(contextOfTraceparent(traceparent), work);

/**
 * Where the work for a row belongs: below the span that is active when that is of the row's own trace, else directly below the row's
 * `traceparent` (a job can come from anywhere, the row knows who asked).
 */
export function contextForRow(traceparent: string | null): Context {
  const own = traceIdOf(traceparent);
  return own === null || trace.getActiveSpan()?.spanContext().traceId === own ? context.active() : contextOfTraceparent(traceparent);
}

/** A span around `work`; a rejection sets status and `error.type` (a problem code or the error's name, never its text, which may hold a secret). */
export function withSpan<T>(name: string, attributes: Attributes, parent: Context, work: (span: Span) => Promise<T>): Promise<T> {
  return tracer.startActiveSpan(name, { attributes }, parent, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      markFailed(span, errorType(error));
      throw error;
    } finally {
      span.end();
    }
  });
}

export function markFailed(span: Span, type: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttribute('error.type', type);
}

const errorType = (error: unknown): string => {
  if (error instanceof StepFailure) return error.problem.code;
  return error instanceof Error ? error.name : 'unknown';
};
