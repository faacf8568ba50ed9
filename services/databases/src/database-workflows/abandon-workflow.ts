import type { abandonDatabaseWorkflow as endpoint } from '@drydock/contracts/database-workflows';
import { problem } from '@drydock/contracts/problem';
import type { ActHandlers } from '@drydock/service-kit/route';
import { abandonWorkflow as apply } from '@drydock/workflow/attention';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { recordVersion } from '../databases/database.store';
import { readDatabase } from '../databases/find-database';
import type { HostedDatabase } from '../providers/database-provider';
import { decideWorkflow } from './decide-workflow';

/** What is on record afterwards is the major that serves: an upgrade may have been stopped on either side of its switch. */
export const abandonWorkflow = (context: HandlerContext) =>
  ({
    look: async (request) => {
      const { id, orgId, mode } = await readDatabase(context, request);
      return context.provider.describe({ databaseId: id, orgId, mode }).catch((cause: unknown) => {
        throw problem('dependency_unavailable', { extra: { dependency: 'database-host' }, retryAfterSeconds: 30, cause });
      });
    },
    act: async (tx: Tx, request, hosted) => {
      const answer = await decideWorkflow(context, tx, request, { action: 'workflow.abandon', apply });
      if (hosted !== null) await recordVersion(tx, request.params.databaseId, String(hosted.major));
      return answer;
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, HostedDatabase | null>;
