import type { watchDatabaseWorkflow as endpoint } from '@drydock/contracts/database-workflows';
import type { StreamEvent, StreamHandlers } from '@drydock/service-kit/route';
import { watchWorkflow as watch } from '@drydock/workflow/watch-workflow';
import type { HandlerContext } from '../context';
import { readDatabaseWorkflow } from './workflow-scope';

/** Each change of a workflow as an event; its id is the version, so that a client which comes back gets what it has missed. */
export const watchWorkflow = (context: HandlerContext) =>
  ({
    stream: async (request) => {
      const { lastEventId, signal, params } = request;
      await readDatabaseWorkflow(context, request);
      const afterVersion = /^\d{1,9}$/.test(lastEventId ?? '') ? { afterVersion: Number(lastEventId) } : {};
      const { database, listener } = context;
      return eventsOf(watch(database.sql(), params.workflowId, { ...afterVersion, signal, listener }));
    },
  }) satisfies StreamHandlers<typeof endpoint>;

async function* eventsOf(versions: ReturnType<typeof watch>): AsyncGenerator<StreamEvent> {
  for await (const { version, view } of versions) yield { id: String(version), event: 'workflow', data: view };
}
