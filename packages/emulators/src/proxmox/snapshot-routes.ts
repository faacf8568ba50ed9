import type { Call, Reply } from '../protocol/call';
import { type PathValues, pathValue } from '../protocol/routes';
import { type AccountRoute, apiAt } from './account-route';
import { dataReply, died } from './proxmox-errors';
import type { Vm } from './proxmox-state';
import type { ProxmoxWorld } from './proxmox-world';
import { allowQuery, bodySchemas, parseForm } from './request-schemas';
import { showSnapshots } from './shapes';
import { startTask } from './start-task';
import { vmAt } from './vm-routes';

function take(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  const { snapname, description = '' } = parseForm(bodySchemas.snapshot, call);
  const vm = vmAt(world, account, values);
  if (snapname === 'current') throw died("unable to use snapshot name 'current' (reserved name)");
  const order = { type: 'qmsnapshot', account, snapname };
  const dies =
    vm.lock !== null
      ? `VM is locked (${vm.lock})`
      : hasSnapshot(vm, snapname)
        ? `snapshot name '${snapname}' already used`
        : null;
  if (dies !== null) return dataReply(startTask(world, vm, { ...order, dies }));
  const snaptime = Math.floor(world.clock.now() / 1_000);
  vm.snapshots.push({
    name: snapname,
    description,
    snaptime,
    parent: vm.parent,
    snapstate: 'prepare',
    disk: { ...vm.disk },
  });
  return dataReply(startTask(world, vm, { ...order, lock: 'snapshot' }));
}

const hasSnapshot = (vm: Vm, snapname: string): boolean => vm.snapshots.some(({ name }) => name === snapname);

function remove(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  allowQuery(call, ['force']);
  const vm = vmAt(world, account, values);
  const snapname = pathValue(values, 'snapname');
  const order = { type: 'qmdelsnapshot', account, snapname };
  const snapshot = vm.snapshots.find(({ name }) => name === snapname);
  if (vm.lock !== null) return dataReply(startTask(world, vm, { ...order, dies: `VM is locked (${vm.lock})` }));
  if (snapshot === undefined)
    return dataReply(startTask(world, vm, { ...order, dies: `snapshot '${snapname}' does not exist` }));
  snapshot.snapstate = 'delete';
  return dataReply(startTask(world, vm, { ...order, lock: 'snapshot-delete' }));
}

/** The error that the worker finds before it changes anything. The call itself has already been answered with 200. */
function rollbackDies(vm: Vm, snapname: string): string | null {
  const snapshot = vm.snapshots.find(({ name }) => name === snapname);
  if (snapshot === undefined) return `snapshot '${snapname}' does not exist`;
  if (vm.isTemplate) return "you can't rollback if vm is a template";
  if (vm.lock !== null) return `VM is locked (${vm.lock})`;
  if (snapshot.snapstate !== null)
    return `unable to rollback to incomplete snapshot (snapstate = ${snapshot.snapstate})`;
  const isNewest = !vm.snapshots.some(({ parent }) => parent === snapname);
  if (vm.storage === 'local-zfs' && !isNewest)
    return `can't rollback, '${snapname}' is not most recent snapshot on '${vm.storage}:vm-${vm.vmid}-disk-0'`;
  return null;
}

function rollBack(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  const { start = false } = parseForm(bodySchemas.rollback, call);
  const vm = vmAt(world, account, values);
  const snapname = pathValue(values, 'snapname');
  const order = { type: 'qmrollback', account, snapname, starts: start };
  const dies = rollbackDies(vm, snapname);
  if (dies !== null) return dataReply(startTask(world, vm, { ...order, dies }));
  vm.status = 'stopped';
  vm.qmpstatus = 'stopped';
  return dataReply(startTask(world, vm, { ...order, lock: 'rollback' }));
}

const path = '/nodes/:node/qemu/:vmid/snapshot';

export const snapshotRoutes: readonly AccountRoute[] = [
  apiAt('GET', path, (world, account, _call, values) => dataReply(showSnapshots(vmAt(world, account, values)))),
  apiAt('POST', path, take),
  apiAt('DELETE', `${path}/:snapname`, remove),
  apiAt('POST', `${path}/:snapname/rollback`, rollBack),
];
