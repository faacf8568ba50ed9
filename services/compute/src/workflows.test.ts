import { orderServerHead } from './servers/order-server.head';
import { rebuildServerHead } from './servers/rebuild-server.head';
import { reconcileServersHead } from './servers/reconcile-servers.head';
import type { WorkContext } from './servers/work';
import { deleteSnapshotHead } from './snapshots/delete-snapshot.head';
import { rollBackServerHead } from './snapshots/roll-back-server.head';
import { takeSnapshotHead } from './snapshots/take-snapshot.head';
import { workflows } from './workflows';

it('requests announce the very steps that workers take', () => {
  const heads = [orderServerHead, takeSnapshotHead, deleteSnapshotHead, rollBackServerHead, rebuildServerHead, reconcileServersHead];
  const announced = heads.map(({ kind, steps }) => [kind, steps.map(({ name }) => name)]);
  const taken = workflows(Object.freeze({}) as WorkContext).map(({ kind, steps }) => [kind, steps.map(({ name }) => name)]);
  expect(announced).toEqual(taken);
});
