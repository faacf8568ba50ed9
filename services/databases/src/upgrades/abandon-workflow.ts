import type { abandonDatabaseWorkflow as endpoint } from '@drydock/contracts/database-workflows';
import { problem } from '@drydock/contracts/problem';
import type { ActHandlers } from '@drydock/service-kit/route';
import * as decided from '@drydock/workflow-kit/decide-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { recordVersion } from '../databases/database.store';
import { databaseHome } from '../databases/database-home';
import { readDatabase } from '../databases/find-database';
import type { HostedDatabase } from '../providers/database-provider';

/** What is on record afterwards is the major that serves: an upgrade may have been stopped on either side of its switch. */
export const abandonWorkflow = (context: HandlerContext) => {
  const { act: abandon } = decided.abandonWorkflow(databaseHome(context));
  return {
    look: async (request) => {
      const { id, orgId, mode } = await readDatabase(context, request);
      return context.provider.describe({ databaseId: id, orgId, mode }).catch((cause: unknown) => {
        throw problem('dependency_unavailable', { extra: { dependency: 'database-host' }, retryAfterSeconds: 30, cause });
      });
    },
    act: async (tx: Tx, request, hosted) => {
      const answer = await abandon(tx, request);
      if (hosted !== null) await recordVersion(tx, request.params.databaseId, String(hosted.major));
      return answer;
    },
  } satisfies ActHandlers<typeof endpoint, Tx, HostedDatabase | null>;
};
