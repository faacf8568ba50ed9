import type {
  preflightComputeServerRollback,
  rollBackComputeServer,
} from '@drydock/contracts/compute/compute-snapshots';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { refusalByWorkflow } from '@drydock/workflow/definition';
import { assertAllowed, assertFree, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import type { Checkpoint } from '../providers/compute.types';
import { acceptMachineWork, readEarlyCheckpoint } from '../servers/machine-work';
import { refuseInoperable } from '../servers/server.rules';
import { type Server, serverPath, serverResourceKey } from '../servers/server.types';
import { readLockedServer, readServer } from '../servers/server-record';
import { readRollbackWorld } from './list-snapshots';
import { rollBackServerWorkflow } from './roll-back-server.workflow';
import { type RollbackWorld, refuseRollback } from './snapshot.rules';

type Finding = Preflight['findings'][number];

/** The age in seconds from which a snapshot gets a warning. */
const oldAfterSeconds = 7 * 86_400;

function viewPreflight(server: Server, world: RollbackWorld, refusal: Preflight['refusal'], now: Date): Preflight {
  const { snapshot } = world;
  const ageSeconds =
    snapshot === null ? 0 : Math.max(0, Math.floor((now.getTime() - snapshot.createdAt.getTime()) / 1_000));
  return {
    would:
      `Overwrite the disk of ${server.name} with the snapshot. ` +
      'Everything written since is lost, and the current state is not kept',
    resource: serverPath(server.id),
    point:
      snapshot === null
        ? null
        : { id: snapshot.id, taken_at: snapshot.createdAt.toISOString(), age_seconds: ageSeconds },
    space: spaceOf(world),
    refusal,
    findings: findingsOf(server, world, ageSeconds),
    undo: false,
  };
}

const bytesInGb = 1e9;

/**
 * The space that the snapshot needs, and the space on the machine's disk. The rollback overwrites the whole disk, so
 * the whole disk counts as free. Null if the provider reports no size of the snapshot.
 */
function spaceOf({ machine, snapshot }: RollbackWorld): Preflight['space'] {
  const neededGb = snapshot?.sizeGb ?? snapshot?.diskGb ?? null;
  if (neededGb === null) return null;
  const freeGb = machine?.diskGb ?? null;
  return {
    needed_bytes: Math.ceil(neededGb * bytesInGb),
    free_bytes: freeGb === null ? null : Math.floor(freeGb * bytesInGb),
  };
}

function findingsOf(
  server: Server,
  { machine, snapshot, capabilities, changesRootPassword }: RollbackWorld,
  ageSeconds: number,
): Finding[] {
  const findings: Array<Finding | false> = [
    machine === null && { level: 'ERROR', code: 'machine_missing', detail: 'The provider knows no such machine.' },
    ageSeconds > oldAfterSeconds && {
      level: 'WARNING',
      code: 'old_snapshot',
      detail: `Everything written since ${snapshot?.createdAt.toISOString()} is lost.`,
    },
    machine?.powerState === 'on' && {
      level: 'WARNING',
      code: 'server_running',
      detail: 'The machine is stopped without notice.',
    },
    machine !== null &&
      changesRootPassword && {
        level: 'WARNING',
        code: 'root_password_changed',
        detail: 'Root gets a new password, which nobody is told. Check that the snapshot holds an SSH key of yours.',
      },
    capabilities.includes('compute:snapshots') &&
      refuseInoperable(server) === null && {
        level: 'INFO',
        code: 'take_a_snapshot',
        detail: 'A snapshot taken now would keep the current state.',
      },
  ];
  return findings.filter((finding) => finding !== false);
}

export const preflightRollback = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, params, requestId } = request;
      const server = await readServer(context, request);
      const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
      const world = await readRollbackWorld(context, server, params.snapshotId);
      const refusal = refusalByWorkflow(unfinished) ?? refuseRollback(server, world);
      return {
        status: 200,
        body: viewPreflight(server, world, refusal === null ? null : problemOf(refusal).body(requestId), now),
      };
    },
  }) satisfies ReadHandlers<typeof preflightComputeServerRollback>;

/**
 * Endpoint 8 of interface.md. Accepts the rollback of a server to a snapshot, which overwrites the server's disk.
 * {@link rollBackServerWorkflow} carries out the rollback.
 */
export const rollBackServer = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const server = await readServer(context, request);
      // This check comes first, because no answer of the provider would change its result.
      await assertFree(context.database.sql(), serverResourceKey(server.id));
      const world = await readRollbackWorld(context, server, request.params.snapshotId);
      return { world, before: await readEarlyCheckpoint(context, server) };
    },
    execute: async (tx: Tx, request, { world, before }) => {
      const server = await readLockedServer(tx, request);
      await assertFree(context.database.sql(tx), serverResourceKey(server.id));
      assertAllowed(refuseRollback(server, world));
      const { deployTarget, machineId, powerState: powerBefore } = server;
      const input = { deployTarget, machineId, snapshotId: request.params.snapshotId, powerBefore, before };
      const work = {
        definition: rollBackServerWorkflow,
        input,
        action: 'server.roll_back',
        meanwhile: 'rebooting',
      } as const;
      return acceptMachineWork(context, tx, request, { server, ...work });
    },
  }) satisfies ExecuteHandlers<typeof rollBackComputeServer, Tx, { world: RollbackWorld; before: Checkpoint | null }>;
