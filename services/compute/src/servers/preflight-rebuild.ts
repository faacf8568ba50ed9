import type { preflightComputeServerRebuild as endpoint } from '@drydock/contracts/compute/compute-servers';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ReadHandlers } from '@drydock/service/http/route';
import { refusalByWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { readServer } from './find-server';
import { lookAtMachine } from './look-at-machine';
import { refuseInoperable, refuseRebuild } from './server.rules';
import { serverPath, serverResourceKey } from './server-names';

/** The preflight of a rebuild: asks the same rules and changes nothing. */
export const preflightRebuild = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const server = await readServer(context, request);
      const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
      const { machine, capabilities } = await lookAtMachine(context, server);
      const refusal = refusalByWorkflow(unfinished) ?? refuseRebuild(server, machine, capabilities);
      const isKeepable = capabilities.includes('compute:snapshots') && refuseInoperable(server) === null;
      const findings: Array<Preflight['findings'][number] | false> = [
        machine === null && { level: 'ERROR', code: 'machine_missing', detail: 'The provider knows no such machine.' },
        machine?.powerState === 'on' && {
          level: 'WARNING',
          code: 'server_running',
          detail: 'The machine is stopped without notice.',
        },
        isKeepable && {
          level: 'INFO',
          code: 'take_a_snapshot',
          detail: 'A snapshot taken now would keep the current state.',
        },
      ];
      const body = {
        would: `Overwrite the disk of ${server.name} with the image ${request.body.image}. Everything on it is lost; its addresses and snapshots stay`,
        resource: serverPath(server.id),
        point: null,
        space: null,
        refusal: refusal === null ? null : problemOf(refusal).body(request.requestId),
        findings: findings.filter((finding) => finding !== false),
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
