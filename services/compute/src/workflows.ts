import type { WorkflowDefinition } from '@drydock/workflow/definition';
import type { WorkContext } from './context/context';
import type { Tx } from './context/database.store';
import { deleteServerWorkflow } from './servers/delete-server.workflow';
import { orderServerWorkflow } from './servers/order-server.workflow';
import { powerServerWorkflow } from './servers/power-server.workflow';
import { rebuildServerWorkflow } from './servers/rebuild-server.workflow';
import { reconcileServersWorkflow } from './servers/reconcile-servers.workflow';
import { deleteSnapshotWorkflow } from './snapshots/delete-snapshot.workflow';
import { rollBackServerWorkflow } from './snapshots/roll-back-server.workflow';
import { takeSnapshotWorkflow } from './snapshots/take-snapshot.workflow';

/** Every workflow of this service. Tests kill the worker in each step. */
export const workflows: readonly WorkflowDefinition<WorkContext, Tx>[] = [
  orderServerWorkflow,
  takeSnapshotWorkflow,
  deleteSnapshotWorkflow,
  rollBackServerWorkflow,
  rebuildServerWorkflow,
  powerServerWorkflow,
  deleteServerWorkflow,
  reconcileServersWorkflow,
];
