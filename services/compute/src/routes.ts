import * as computeServers from '@drydock/contracts/compute/compute-servers';
import * as computeSnapshots from '@drydock/contracts/compute/compute-snapshots';
import { serverQuota } from '@drydock/contracts/platform/quotas';
import { getQuota, type Route, route, setQuota } from '@drydock/service/http';
import { abandonWorkflow, getWorkflow, listWorkflows, retryWorkflow, watchWorkflow } from '@drydock/workflow/http';
import type { HandlerContext } from './context/context';
import type { Tx } from './context/database.store';
import { deleteServer, preflightDeletion } from './servers/delete-server';
import { orderServer } from './servers/order-server';
import {
  powerOffServer,
  powerOnServer,
  preflightPowerOff,
  preflightPowerOn,
  preflightReboot,
  rebootServer,
} from './servers/power-server';
import { preflightRebuild, rebuildServer } from './servers/rebuild-server';
import { getServer, listServers, serverParent, updateServer } from './servers/server-record';
import { deleteSnapshot } from './snapshots/delete-snapshot';
import { getSnapshot, listSnapshots } from './snapshots/list-snapshots';
import { preflightRollback, rollBackServer } from './snapshots/roll-back-server';
import { takeSnapshot } from './snapshots/take-snapshot';

const { serverWorkflows } = computeServers;

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(computeServers.listComputeServers, listServers(context)),
  route(computeServers.orderComputeServer, orderServer(context)),
  route(serverQuota.get, getQuota(context)),
  route(serverQuota.set, setQuota(context, serverQuota.get.path)),
  route(computeServers.getComputeServer, getServer(context)),
  route(computeServers.updateComputeServer, updateServer(context)),
  route(computeServers.deleteComputeServer, deleteServer(context)),
  route(computeServers.preflightComputeServerDeletion, preflightDeletion(context)),
  route(computeServers.powerOnComputeServer, powerOnServer(context)),
  route(computeServers.powerOffComputeServer, powerOffServer(context)),
  route(computeServers.rebootComputeServer, rebootServer(context)),
  route(computeServers.preflightComputeServerPowerOn, preflightPowerOn(context)),
  route(computeServers.preflightComputeServerPowerOff, preflightPowerOff(context)),
  route(computeServers.preflightComputeServerReboot, preflightReboot(context)),
  route(computeServers.rebuildComputeServer, rebuildServer(context)),
  route(computeServers.preflightComputeServerRebuild, preflightRebuild(context)),
  route(computeSnapshots.listServerSnapshots, listSnapshots(context)),
  route(computeSnapshots.getServerSnapshot, getSnapshot(context)),
  route(computeSnapshots.takeServerSnapshot, takeSnapshot(context)),
  route(computeSnapshots.deleteServerSnapshot, deleteSnapshot(context)),
  route(computeSnapshots.rollBackComputeServer, rollBackServer(context)),
  route(computeSnapshots.preflightComputeServerRollback, preflightRollback(context)),
  route(serverWorkflows.list, listWorkflows(serverParent(context), serverWorkflows.list)),
  route(serverWorkflows.get, getWorkflow(serverParent(context))),
  route(serverWorkflows.watch, watchWorkflow(serverParent(context))),
  route(serverWorkflows.retry, retryWorkflow(serverParent(context))),
  route(serverWorkflows.abandon, abandonWorkflow(serverParent(context))),
];
