import { metrics } from '@opentelemetry/api';

const meter = metrics.getMeter('@drydock/workflow');
const started = meter.createCounter('workflow.started', { description: 'Workflows accepted' });
const finished = meter.createCounter('workflow.finished', { description: 'Workflows that came to an end, by status' });
const parked = meter.createCounter('workflow.parked', { description: 'Workflows that began to wait for staff' });
const refused = meter.createCounter('workflow.refused_fences', {
  description: 'Writes refused because the claim was no longer the writer’s',
});
const queueDelay = meter.createHistogram('workflow.queue_delay', { unit: 's', description: 'From due to claimed' });
const waiting = meter.createObservableGauge('workflow.needs_attention', { description: 'Workflows that wait for staff' });

let waitingForStaff = 0;
waiting.addCallback((result) => result.observe(waitingForStaff));

export const workflowStarted = (kind: string): void => started.add(1, { kind });
export const workflowFinished = (kind: string, status: 'succeeded' | 'failed'): void => finished.add(1, { kind, status });
export const workflowParked = (kind: string): void => parked.add(1, { kind });
export const fenceRefused = (kind: string): void => refused.add(1, { kind });
export const claimedAfter = (kind: string, seconds: number): void => queueDelay.record(seconds, { kind });
export const countWaitingForStaff = (count: number): void => {
  waitingForStaff = count;
};
