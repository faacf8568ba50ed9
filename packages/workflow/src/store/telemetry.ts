import {
  type Attributes,
  type Context,
  context,
  metrics,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { StepFailure } from '../definition/step-error';

const tracer = trace.getTracer('@drydock/workflow');
const traceparentForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

function contextOfTraceparent(traceparent: string | null): Context {
  const [, traceId, spanId, flags] = traceparentForm.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  });
}

export const traceIdOf = (traceparent: string | null): string | null =>
  traceparentForm.exec(traceparent ?? '')?.[1] ?? null;

/** The `traceparent` of the active span; undefined while tracing is off. */
export function activeTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !trace.isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}

/** Runs `work` in the trace of `traceparent`, whatever trace is active. With null, `work` runs outside any trace. */
export const inTraceOf = <T>(traceparent: string | null, work: () => T): T =>
  context.with(contextOfTraceparent(traceparent), work);

/**
 * Returns the parent for the spans of a workflow's run. If the workflow's row has no trace, the parent is the active
 * span, or a new trace begins. If the active span belongs to the row's trace, that span is the parent. Otherwise the
 * parent is the row's `traceparent`, because a job may carry another trace than the row.
 */
export function contextForRow(traceparent: string | null): Context {
  const own = traceIdOf(traceparent);
  const active = trace.getActiveSpan();
  if (own === null) return active === undefined ? ROOT_CONTEXT : context.active();
  return active?.spanContext().traceId === own ? context.active() : contextOfTraceparent(traceparent);
}

/**
 * Runs `work` in a span. A rejection sets the status and `error.type`, which is a problem code or the error's name. The
 * error's text is not recorded, because it may contain a secret.
 */
export function withSpan<T>(
  name: string,
  attributes: Attributes,
  parent: Context,
  work: (span: Span) => Promise<T>,
): Promise<T> {
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

const meter = metrics.getMeter('@drydock/workflow');
const started = meter.createCounter('workflow.started', { description: 'Workflows accepted' });
const finished = meter.createCounter('workflow.finished', { description: 'Workflows that came to an end, by status' });
const parked = meter.createCounter('workflow.parked', { description: 'Workflows that began to wait for staff' });
const refused = meter.createCounter('workflow.refused_fences', {
  description: 'Writes refused because the claim was no longer the writer’s',
});
const queueDelay = meter.createHistogram('workflow.queue_delay', {
  unit: 's',
  description: 'From due to claimed',
  advice: { explicitBucketBoundaries: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600] },
});
const duration = meter.createHistogram('workflow.duration', {
  unit: 's',
  description: 'From accepted to the end',
  advice: { explicitBucketBoundaries: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 1_800, 3_600, 14_400] },
});
const stepDuration = meter.createHistogram('workflow.step.duration', {
  unit: 's',
  description: 'One attempt at a step, by its outcome',
  advice: { explicitBucketBoundaries: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600] },
});
const leasesLost = meter.createCounter('workflow.leases_lost', {
  description: 'Runs that stopped before their end: the claim was another worker’s by then, or the process ended',
});
const waiting = meter.createObservableGauge('workflow.needs_attention', {
  description: 'Workflows that wait for staff',
});
const unfinished = meter.createObservableGauge('workflow.unfinished', {
  description: 'Workflows that are queued or running',
});
const oldestDue = meter.createObservableGauge('workflow.oldest_due', {
  unit: 's',
  description: 'How long the oldest work has been due that no worker has taken up',
});

/**
 * The number of unfinished workflows of one kind. `dueSeconds` says for how long the oldest unclaimed workflow has been
 * due; 0 if every due workflow is claimed.
 */
export interface UnfinishedCount {
  kind: string;
  queued: number;
  running: number;
  needsAttention: number;
  dueSeconds: number;
}

/**
 * The counts of every kind of workflow. Null in a process that does not report, because one worker of a service reports
 * for all its workers.
 */
let counts: readonly UnfinishedCount[] | null = null;
meter.addBatchObservableCallback(
  (result) => {
    for (const { kind, queued, running, needsAttention, dueSeconds } of counts ?? []) {
      result.observe(waiting, needsAttention, { kind });
      result.observe(unfinished, queued, { kind, status: 'queued' });
      result.observe(unfinished, running, { kind, status: 'running' });
      result.observe(oldestDue, dueSeconds, { kind });
    }
  },
  [waiting, unfinished, oldestDue],
);

/**
 * Adds zero to all counters but `workflow.started`, so that they exist before anything is counted. A counter that first
 * appears with the value one would not show as growth.
 */
export function beginCounting(kinds: readonly string[]): void {
  for (const kind of kinds) {
    for (const counter of [parked, refused, leasesLost]) counter.add(0, { kind });
    for (const status of ['succeeded', 'failed']) finished.add(0, { kind, status });
  }
}
export const workflowStarted = (kind: string): void => started.add(1, { kind });
/** Counts the end of a workflow. `seconds` is the time since its acceptance; absent if no worker ever claimed it. */
export function workflowFinished(kind: string, status: 'succeeded' | 'failed', seconds?: number): void {
  finished.add(1, { kind, status });
  if (seconds !== undefined) duration.record(seconds, { kind, status });
}
export const stepEnded = (kind: string, step: string, outcome: string, seconds: number): void =>
  stepDuration.record(seconds, { kind, step, outcome });
export const leaseLost = (kind: string): void => leasesLost.add(1, { kind });
export const workflowParked = (kind: string): void => parked.add(1, { kind });
export const fenceRefused = (kind: string): void => refused.add(1, { kind });
export const claimedAfter = (kind: string, seconds: number): void => queueDelay.record(seconds, { kind });
export const reportUnfinished = (found: readonly UnfinishedCount[] | null): void => {
  counts = found;
};
