import { SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('@drydock/hosting');

/** One phase of a driver's work in the trace of its step. Names and counts only: no path, no URL, no customer's word. */
export function withSpan<T>(name: string, attributes: Record<string, string | number>, work: () => Promise<T>): Promise<T> {
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
