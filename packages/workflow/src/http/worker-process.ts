import type { Event, EventType } from '@drydock/contracts/keys/events';
import type { Mode } from '@drydock/contracts/platform/values';
import type { WorkflowStatus } from '@drydock/contracts/platform/workflows';
import type { Database } from '@drydock/service/database';
import {
  auditOutbox,
  createOutboxDelivery,
  type Outbox,
  type OutboxRow,
  secondsSince,
  timestampSql,
} from '@drydock/service/effects';
import { createHealthServer } from '@drydock/service/http';
import {
  type ConfigOf,
  createRounds,
  databaseReady,
  type Foundation,
  type Process,
  type QueueConfig,
  type ServiceConfig,
  type workerFields,
} from '@drydock/service/process';
import { traceForWork } from '@drydock/service/telemetry';
import { metrics } from '@opentelemetry/api';
import { createEngine, type Engine, type EngineOptions } from '../runner/engine';
import { createListener, type WorkflowListener } from '../store/listener';
import { purgeWorkflows } from '../store/purge-workflows';
import { viewFailure, type WorkflowFailure } from '../store/read-workflow';
import type { QueueBoard } from './queue-board';

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

const eventOutbox: Outbox<EventRow> = {
  name: 'events',
  path: '/internal/events',
  selectSql: `
    SELECT seq::text, id::text, type, org_id::text, mode, resource, actor_key_id::text, workflow_id::text, kind,
      request_id, error,
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

type WorkerConfig = QueueConfig &
  ConfigOf<typeof workerFields> & { WORKFLOW_CONCURRENCY: number } & Pick<
    ServiceConfig,
    'HOST' | 'PORT' | 'DATABASE_URL' | 'KEYS_URL' | 'AUDIT_TOKEN_SECRET'
  >;

interface WorkerOptions<Context, Tx> {
  /** The service's name. It is also the queue's name, and the issuer of the tokens for the keys service. */
  name: string;
  workflows: EngineOptions<Context, Tx>['definitions'];
  /** The drivers, stores and clock that every step is given. */
  context: Context;
  /** Writes the schedules. It is called before the engine looks for due schedules. */
  schedule?(): unknown;
}

/**
 * The longest pause between two reads of an outbox, in milliseconds. The announcement of a change causes an earlier
 * read. This pause matters if an announcement is lost, and for commands of staff, which announce nothing.
 */
const outboxMs = 5_000;
const purgeMs = 3_600_000;

/**
 * The time that the engine gets to close, in milliseconds. In this time running steps stop at a safe place, and their
 * workflows are given back.
 */
const engineCloseMs = 15_000;

/**
 * Composes the process that runs the workflows of a service, delivers its audit entries and events, and removes its old
 * workflows. The caller must have opened everything that the steps use before this call. The lifetime closes in reverse
 * order, so the engine stops first.
 */
export function composeWorkerProcess<Context, Tx>(
  foundation: Foundation<Database<Tx>>,
  config: WorkerConfig,
  { name, workflows, context, schedule }: WorkerOptions<Context, Tx>,
): Process {
  traceForWork();
  const { log, lifetime, database } = foundation;
  const towardsKeys = { database, keysUrl: config.KEYS_URL, secret: config.AUDIT_TOKEN_SECRET, service: name, log };
  const auditDelivery = createOutboxDelivery({ ...towardsKeys, outbox: auditOutbox, everyMs: outboxMs });
  const eventDelivery = createOutboxDelivery({ ...towardsKeys, outbox: eventOutbox, everyMs: outboxMs });
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  // Each change of a workflow, and each write of the API, is announced after the commit. By then the audit entry and
  // the event of the change are in the outboxes.
  listener.onMessage(() => {
    auditDelivery.ring();
    eventDelivery.ring();
  });
  const engine = openEngine(foundation, config, listener, { name, workflows, context });
  const purge = createRounds(log, 'the removal of old workflows', purgeMs, async (signal) => {
    while (!signal.aborted && (await purgeWorkflows(database.sql())));
  });
  const ready = { ...databaseReady(database), queue: () => engine.checkQueue() };
  const board = openBoard(foundation, config, name);
  const health = createHealthServer({ log, ready, mounted: board });
  lifetime.onClose('http', () => health.close());
  return {
    log,
    lifetime,
    start: async () => {
      auditDelivery.start();
      lifetime.onClose('audit delivery', () => auditDelivery.stop());
      eventDelivery.start();
      lifetime.onClose('event delivery', () => eventDelivery.stop());
      purge.start();
      lifetime.onClose('workflow purge', () => purge.stop());
      await schedule?.();
      engine.start();
      lifetime.onClose('engine', () => engine.stop(), engineCloseMs);
      return health.listen(config.PORT, config.HOST);
    },
  };
}

/** Opens the queue board if it is configured. Its code is loaded only here, because it loads a web framework. */
function openBoard(
  { log, lifetime }: Pick<Foundation<unknown>, 'log' | 'lifetime'>,
  config: WorkerConfig,
  name: string,
): QueueBoard | undefined {
  if (config.QUEUE_BOARD_TOKEN === undefined) return undefined;
  const { createQueueBoard }: typeof import('./queue-board') = require('./queue-board');
  const board = createQueueBoard({ token: config.QUEUE_BOARD_TOKEN, queueUrl: config.QUEUE_URL, queueName: name, log });
  lifetime.onClose('queue board', () => board.close());
  return board;
}

function openEngine<Context, Tx>(
  { log, database }: Foundation<Database<Tx>>,
  config: WorkerConfig,
  listener: WorkflowListener,
  { name, workflows, context }: WorkerOptions<Context, Tx>,
): Engine {
  return createEngine({
    database,
    definitions: workflows,
    context,
    queueUrl: config.QUEUE_URL,
    queueName: name,
    leaseSeconds: config.WORKFLOW_LEASE_SECONDS,
    sweepMs: config.WORKFLOW_SWEEP_MS,
    concurrency: config.WORKFLOW_CONCURRENCY,
    log,
    listener,
  });
}
