import type { Database } from '@drydock/service/database/sql';
import type { QueueConfig, ServiceConfig } from '@drydock/service/process/config-fields';
import type { Foundation } from '@drydock/service/process/foundation';
import { createDispatcher } from '@drydock/workflow/dispatcher';
import { createListener } from '@drydock/workflow/listener';
import type { WorkflowContext } from './workflow-context';

/** What an API needs for its workflows: it hears of their changes, and rings for a worker. `queueName`: the worker's too. */
export function connectWorkflows<Tx>(
  { log, lifetime, database }: Foundation<Database<Tx>>,
  config: Pick<ServiceConfig, 'DATABASE_URL'> & Pick<QueueConfig, 'QUEUE_URL'>,
  queueName: string,
): Pick<WorkflowContext<Tx>, 'listener' | 'ring'> {
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  const dispatcher = createDispatcher({ database, queueUrl: config.QUEUE_URL, queueName, log });
  lifetime.onClose('dispatcher', () => dispatcher.close());
  return { listener, ring: dispatcher.ring };
}
