import type { Database } from '@drydock/service/database';
import type { Pager } from '@drydock/service/http';
import type { Foundation, QueueConfig, ServiceConfig } from '@drydock/service/process';
import { createDispatcher, type Dispatcher } from '../dispatch/dispatcher';
import { createListener, type WorkflowListener } from '../store/listener';

/** The parts that handlers of a service with workflows have, besides its own. */
export interface WorkflowContext<Tx> {
  database: Database<Tx>;
  pager: Pager;
  /** Postgres' notifications about workflows, for requests that watch one. */
  listener: WorkflowListener;
  /** Tells the worker of a new workflow; called after the commit. */
  enqueue: Dispatcher['enqueue'];
}

/**
 * Connects an API to its workflows: it hears of their changes, and enqueues a job for a worker. `queueName`: the
 * worker's too.
 */
export function connectWorkflows<Tx>(
  { log, lifetime, database }: Foundation<Database<Tx>>,
  config: Pick<ServiceConfig, 'DATABASE_URL'> & Pick<QueueConfig, 'QUEUE_URL'>,
  queueName: string,
): Pick<WorkflowContext<Tx>, 'listener' | 'enqueue'> {
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  const dispatcher = createDispatcher({ database, queueUrl: config.QUEUE_URL, queueName, log });
  lifetime.onClose('dispatcher', () => dispatcher.close());
  return { listener, enqueue: dispatcher.enqueue };
}
