import type { preflightComputeServerRebuild, rebuildComputeServer } from '@drydock/contracts/compute/compute-servers';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { refusalByWorkflow } from '@drydock/workflow/definition';
import { assertAllowed, assertFree, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import type { Checkpoint, Machine } from '../providers/compute.types';
import { acceptMachineWork, readEarlyCheckpoint, readerOf, readServerMachine } from './machine-work';
import { rebuildServerWorkflow } from './rebuild-server.workflow';
import { refuseInoperable, refuseRebuild } from './server.rules';
import { serverPath, serverResourceKey } from './server.types';
import { readLockedServer, readServer } from './server-record';

export const preflightRebuild = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const server = await readServer(context, request);
      const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
      const { machine, capabilities } = await readServerMachine(context, server);
      const refusal = refusalByWorkflow(unfinished) ?? refuseRebuild(server, machine, capabilities);
      const isKeepable = capabilities.includes('compute:snapshots') && refuseInoperable(server) === null;
      const findings: Array<Preflight['findings'][number] | false> = [
        machine === null && { level: 'ERROR', code: 'machine_missing', detail: 'The provider knows no such machine.' },
        machine?.powerState === 'on' && {
          level: 'WARNING',
          code: 'server_running',
          detail: 'The machine is stopped without notice.',
        },
        machine !== null &&
          !server.hasSshKeys &&
          readerOf(context, server).changesRootPassword === true && {
            level: 'WARNING',
            code: 'root_password_changed',
            detail: 'Root gets a new password, which nobody is told, and the image holds no SSH key of yours.',
          },
        isKeepable && {
          level: 'INFO',
          code: 'take_a_snapshot',
          detail: 'A snapshot taken now would keep the current state.',
        },
      ];
      const body = {
        would:
          `Overwrite the disk of ${server.name} with the image ${request.body.image}. ` +
          'Everything on it is lost; its addresses and snapshots stay',
        resource: serverPath(server.id),
        point: null,
        space: null,
        refusal: refusal === null ? null : problemOf(refusal).body(request.requestId),
        findings: findings.filter((finding) => finding !== false),
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof preflightComputeServerRebuild>;

export const rebuildServer = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      return { ...(await readServerMachine(context, server)), before: await readEarlyCheckpoint(context, server) };
    },
    execute: async (tx: Tx, request, { machine, capabilities, before }) => {
      const server = await readLockedServer(tx, request);
      await assertFree(context.database.sql(tx), serverResourceKey(server.id));
      assertAllowed(refuseRebuild(server, machine, capabilities));
      const { deployTarget, machineId, powerState: powerBefore } = server;
      const input = { deployTarget, machineId, image: request.body.image, powerBefore, before };
      const work = {
        definition: rebuildServerWorkflow,
        input,
        action: 'server.rebuild',
        meanwhile: 'rebooting',
      } as const;
      return acceptMachineWork(context, tx, request, { server, ...work });
    },
  }) satisfies ExecuteHandlers<
    typeof rebuildComputeServer,
    Tx,
    { machine: Machine | null; capabilities: readonly string[]; before: Checkpoint | null }
  >;
