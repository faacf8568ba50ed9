import { SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('@drydock/hosting');

/**
 * Traces one phase of work as a span below the active span. Without an active span none is made, because a span without
 * a parent would begin a trace of its own. Attributes must be ids, counts or sizes, so that no path, no URL and no text
 * of a customer gets into a trace.
 */
export function withSpan<T>(
  name: string,
  attributes: Record<string, string | number>,
  work: () => Promise<T>,
): Promise<T> {
  if (trace.getActiveSpan() === undefined) return work();
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown');
      throw error;
    } finally {
      span.end();
    }
  });
}
