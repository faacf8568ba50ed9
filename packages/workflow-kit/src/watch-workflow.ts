import type { StreamEvent } from '@drydock/service/http/route';
import { watchWorkflow as watch } from '@drydock/workflow/watch-workflow';
import { type AboutWorkflow, readHomeWorkflow, type WorkflowHome } from './workflow-home';

type WatchRequest<Name extends string> = AboutWorkflow<Name> & { lastEventId: string | undefined; signal: AbortSignal };

/** Each change of a workflow as an event; its id is the version, so that a client which comes back gets what it has missed, and stays away after the last. */
export const watchWorkflow = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>) => ({
  stream: async (request: WatchRequest<Name>) => {
    const { lastEventId, signal, params } = request;
    const { version, view } = await readHomeWorkflow(home, request);
    const afterVersion = /^\d{1,9}$/.test(lastEventId ?? '') ? Number(lastEventId) : 0;
    const isOver = view.status === 'succeeded' || view.status === 'failed';
    if (isOver && version <= afterVersion) return null;
    const { database, listener } = home.context;
    return eventsOf(watch(database.sql(), params.workflowId, { afterVersion, signal, listener }));
  },
});

async function* eventsOf(versions: ReturnType<typeof watch>): AsyncGenerator<StreamEvent> {
  for await (const { version, view } of versions) yield { id: String(version), event: 'workflow', data: view };
}
