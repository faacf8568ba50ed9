import type {
  powerOffComputeServer,
  powerOnComputeServer,
  preflightComputeServerPowerOff,
  preflightComputeServerPowerOn,
  preflightComputeServerReboot,
  rebootComputeServer,
} from '@drydock/contracts/compute/compute-servers';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { Caller } from '@drydock/service/access';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { refusalByWorkflow } from '@drydock/workflow/definition';
import { type Asking, assertAllowed, assertFree, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { isPowered, type PowerKind } from '../providers/change.rules';
import type { Checkpoint, Machine } from '../providers/compute.types';
import { acceptMachineWork, readEarlyCheckpoint, readServerMachine } from './machine-work';
import { powerServerWorkflow } from './power-server.workflow';
import { refusePower } from './server.rules';
import { type Server, serverPath, serverResourceKey } from './server.types';
import { readLockedServer, readServer } from './server-record';

interface AboutPower extends Asking {
  caller: Caller;
  params: { serverId: string };
  now: Date;
}

interface AskedPower {
  change: PowerKind;
  isForced: boolean;
}

interface PowerWorld {
  machine: Machine | null;
  before: Checkpoint | null;
}

const meanwhile = { power_on: 'starting', power_off: 'stopping', reboot: 'rebooting' } as const;
const actions = { power_on: 'server.power_on', power_off: 'server.power_off', reboot: 'server.reboot' } as const;

async function preloadPower(context: HandlerContext, request: AboutPower): Promise<PowerWorld> {
  const server = await readServer(context, request);
  await assertFree(context.database.sql(), serverResourceKey(server.id));
  const { machine } = await readServerMachine(context, server);
  return { machine, before: await readEarlyCheckpoint(context, server) };
}

async function acceptPower(
  context: HandlerContext,
  tx: Tx,
  request: AboutPower,
  { machine, before }: PowerWorld,
  { change, isForced }: AskedPower,
) {
  const server = await readLockedServer(tx, request);
  await assertFree(context.database.sql(tx), serverResourceKey(server.id));
  assertAllowed(refusePower(server, machine, change));
  const { deployTarget, machineId, powerState: powerBefore } = server;
  const input = { deployTarget, machineId, change, isForced, powerBefore, before };
  const work = { definition: powerServerWorkflow, input, action: actions[change], meanwhile: meanwhile[change] };
  return acceptMachineWork(context, tx, request, { server, ...work });
}

export const powerOnServer = (context: HandlerContext) =>
  ({
    preload: (request) => preloadPower(context, request),
    execute: (tx: Tx, request, world) =>
      acceptPower(context, tx, request, world, { change: 'power_on', isForced: false }),
  }) satisfies ExecuteHandlers<typeof powerOnComputeServer, Tx, PowerWorld>;

export const powerOffServer = (context: HandlerContext) =>
  ({
    preload: (request) => preloadPower(context, request),
    execute: (tx: Tx, request, world) =>
      acceptPower(context, tx, request, world, { change: 'power_off', isForced: request.body.force === true }),
  }) satisfies ExecuteHandlers<typeof powerOffComputeServer, Tx, PowerWorld>;

export const rebootServer = (context: HandlerContext) =>
  ({
    preload: (request) => preloadPower(context, request),
    execute: (tx: Tx, request, world) =>
      acceptPower(context, tx, request, world, { change: 'reboot', isForced: request.body.force === true }),
  }) satisfies ExecuteHandlers<typeof rebootComputeServer, Tx, PowerWorld>;

export const preflightPowerOn = (context: HandlerContext) =>
  ({
    read: (request) => preflightPower(context, request, { change: 'power_on', isForced: false }),
  }) satisfies ReadHandlers<typeof preflightComputeServerPowerOn>;

export const preflightPowerOff = (context: HandlerContext) =>
  ({
    read: (request) => preflightPower(context, request, { change: 'power_off', isForced: request.body.force === true }),
  }) satisfies ReadHandlers<typeof preflightComputeServerPowerOff>;

export const preflightReboot = (context: HandlerContext) =>
  ({
    read: (request) => preflightPower(context, request, { change: 'reboot', isForced: request.body.force === true }),
  }) satisfies ReadHandlers<typeof preflightComputeServerReboot>;

async function preflightPower(
  context: HandlerContext,
  request: Pick<AboutPower, 'caller' | 'params' | 'requestId'>,
  asked: AskedPower,
): Promise<{ status: 200; body: Preflight }> {
  const server = await readServer(context, request);
  const unfinished = await findUnfinished(context.database.sql(), serverResourceKey(server.id));
  const { machine } = await readServerMachine(context, server);
  const refusal = refusalByWorkflow(unfinished) ?? refusePower(server, machine, asked.change);
  const body = {
    would: sentenceOf(server, asked),
    resource: serverPath(server.id),
    point: null,
    space: null,
    refusal: refusal === null ? null : problemOf(refusal).body(request.requestId),
    findings: findingsOf(machine, asked),
    undo: false as const,
  };
  return { status: 200, body };
}

function sentenceOf({ name }: Pick<Server, 'name'>, { change, isForced }: AskedPower): string {
  if (change === 'power_on') return `Power ${name} on`;
  if (change === 'power_off')
    return isForced
      ? `Cut the power of ${name}`
      : `Have the guest of ${name} shut down; its power is never cut unasked`;
  return isForced
    ? `Cut the power of ${name} and give it back`
    : `Have the guest of ${name} restart; its power is never cut unasked`;
}

function findingsOf(machine: Machine | null, { change, isForced }: AskedPower): Preflight['findings'] {
  if (machine === null)
    return [{ level: 'ERROR', code: 'machine_missing', detail: 'The provider knows no such machine.' }];
  if (isPowered(machine, change)) return [unchanged(machine)];
  const isDisturbed = change !== 'power_on' && machine.powerState === 'on';
  const findings: Array<Preflight['findings'][number] | false> = [
    isDisturbed &&
      isForced && {
        level: 'WARNING',
        code: 'unwritten_lost',
        detail: 'Data that the guest has not written to its disk is lost.',
      },
    isDisturbed && {
      level: 'WARNING',
      code: 'server_running',
      detail: 'Its connections are cut off, and data that its programs hold in memory is lost.',
    },
    change === 'power_off' && { level: 'INFO', code: 'still_paid_for', detail: 'A server that is off costs the same.' },
  ];
  return findings.filter((finding) => finding !== false);
}

const unchanged = ({ powerState }: Machine): Preflight['findings'][number] => ({
  level: 'INFO',
  code: 'no_change',
  detail: `It is ${powerState} already and stays as it is.`,
});
