import type { ProxmoxState, Task, Vm } from './proxmox-state';

/** The effect of a task comes at its end. A task that fails has none. */
export function endTask(state: ProxmoxState, task: Task): void {
  task.isOver = true;
  const vm = state.vms.find(({ vmid }) => vmid === task.vmid);
  if (vm === undefined) return;
  const hasFailed = task.exitstatus !== 'OK';
  // A rollback that fails half-way keeps its lock until staff remove it.
  if (!hasFailed || task.type !== 'qmrollback') vm.lock = null;
  if (hasFailed) failTask(state, vm, task);
  else effects[task.type]?.(vm, task, state);
}

const effects: Readonly<Record<string, (vm: Vm, task: Task, state: ProxmoxState) => void>> = {
  qmstart: (vm) => setPower(vm, true),
  qmreboot: (vm) => setPower(vm, true),
  qmreset: (vm) => setPower(vm, true),
  qmstop: (vm) => setPower(vm, false),
  qmshutdown: (vm) => setPower(vm, false),
  qmsnapshot: endSnapshot,
  qmdelsnapshot: removeSnapshot,
  qmrollback: rollBack,
  qmdestroy: (vm, _task, state) => {
    state.vms = state.vms.filter(({ vmid }) => vmid !== vm.vmid);
  },
};

function failTask(state: ProxmoxState, vm: Vm, task: Task): void {
  if (task.type === 'qmclone') state.vms = state.vms.filter(({ vmid }) => vmid !== vm.vmid);
  if (task.type === 'qmsnapshot') vm.snapshots = vm.snapshots.filter(({ name }) => name !== task.snapname);
}

function setPower(vm: Vm, isOn: boolean): void {
  vm.status = isOn ? 'running' : 'stopped';
  vm.qmpstatus = vm.status;
}

function endSnapshot(vm: Vm, { snapname }: Task): void {
  const snapshot = vm.snapshots.find(({ name }) => name === snapname);
  if (snapshot === undefined) return;
  snapshot.snapstate = null;
  vm.parent = snapshot.name;
}

function removeSnapshot(vm: Vm, { snapname }: Task): void {
  const gone = vm.snapshots.find(({ name }) => name === snapname);
  if (gone === undefined) return;
  vm.snapshots = vm.snapshots.filter((snapshot) => snapshot !== gone);
  for (const child of vm.snapshots.filter(({ parent }) => parent === gone.name)) child.parent = gone.parent;
  if (vm.parent === gone.name) vm.parent = gone.parent;
}

function rollBack(vm: Vm, { snapname, starts }: Task): void {
  const snapshot = vm.snapshots.find(({ name }) => name === snapname);
  if (snapshot === undefined) return;
  vm.disk = { ...snapshot.disk };
  vm.parent = snapshot.name;
  if (starts) setPower(vm, true);
}
