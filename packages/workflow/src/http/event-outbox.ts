import type { Event, EventType } from '@drydock/contracts/keys/events';
import type { Mode } from '@drydock/contracts/platform/values';
import type { WorkflowStatus } from '@drydock/contracts/platform/workflows';
import { secondsSince, timestampSql } from '@drydock/service/effects/audit';
import type { Outbox, OutboxRow } from '@drydock/service/effects/outbox-delivery';
import { metrics } from '@opentelemetry/api';
import { viewFailure, type WorkflowFailure } from '../store/read-workflow';

let oldestAt: string | null = null;
metrics
  .getMeter('@drydock/workflow')
  .createObservableGauge('events.oldest_undelivered', {
    unit: 's',
    description: 'Age of the oldest event of a workflow that keys does not have',
  })
  .addCallback((result) => result.observe(secondsSince(oldestAt)));

interface EventRow extends OutboxRow, Omit<Event, 'workflow'> {
  mode: Mode;
  workflow_id: string;
  kind: string;
  request_id: string;
  error: WorkflowFailure | null;
}

const statusOf = (type: EventType): WorkflowStatus => {
  if (type === 'workflow.succeeded') return 'succeeded';
  if (type === 'workflow.failed') return 'failed';
  return type === 'workflow.needs_attention' ? 'needs_attention' : 'queued';
};

export const eventOutbox: Outbox<EventRow> = {
  name: 'events',
  path: '/internal/events',
  selectSql: `
    SELECT seq::text, id::text, type, org_id::text, mode, resource, actor_key_id::text, workflow_id::text, kind, request_id, error,
      ${timestampSql('at')} AS at
    FROM workflow_event ORDER BY workflow_event.seq LIMIT $1::int`,
  entryOf: ({ seq: _seq, workflow_id: id, kind, request_id, error, ...event }) => ({
    ...event,
    workflow: { id, kind, status: statusOf(event.type), error: error === null ? null : viewFailure(error, request_id) },
  }),
  deleteSql: 'DELETE FROM workflow_event WHERE seq = ANY($1::bigint[])',
  observe: (at) => {
    oldestAt = at;
  },
};
