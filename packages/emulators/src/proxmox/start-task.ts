import type { ProxmoxState, Task, Vm } from './proxmox-state';
import type { ProxmoxWorld } from './proxmox-world';

/** Requests for failures in a VM's description: the type of task that fails, and extra seconds for each task. */
const failsIn = /"emulator\.fail":"([a-z]+)"/;
const slowIn = /"emulator\.slow-seconds":"(\d+)"/;

interface TaskOrder {
  type: string;
  account: string | null;
  /** The VM under which the task is listed, if it is not the VM that the task changes. */
  filedUnder?: Vm;
  lock?: string;
  snapname?: string;
  starts?: boolean;
  /** The error with which the task ends at once. Proxmox accepts such a call and finds the error only in the task. */
  dies?: string;
}

/** Returns the user of a task. Proxmox records the full name of an API token. */
const userOf = (account: string | null): string => (account === null ? 'root@pam' : `${account}@pve!drydock`);

const hex = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0');

const failureOf = (type: string): string =>
  type === 'qmshutdown' || type === 'qmreboot'
    ? 'VM quit/powerdown failed - got timeout'
    : `command '/usr/bin/${type}' failed: exit code 1`;

/** Starts a task and returns its UPID. The ledger records it unless it ends with an error at once. */
export function startTask(world: ProxmoxWorld, vm: Vm, order: TaskOrder): string {
  const { state, clock } = world;
  const [started, filed] = [clock.now(), order.filedUnder ?? vm];
  state.lastPid += 1;
  const { lastPid: pid } = state;
  const pstart = Math.floor(started / 10) % 0xffffffff;
  const epoch = Math.floor(started / 1_000);
  const upid =
    `UPID:${filed.node}:${hex(pid)}:${hex(pstart)}:${hex(epoch)}:` +
    `${order.type}:${filed.vmid}:${userOf(order.account)}:`;
  const seconds = (world.taskSeconds[order.type] ?? 1) + Number(slowIn.exec(vm.description)?.[1] ?? 0);
  const isDoomed = failsIn.exec(vm.description)?.[1] === order.type;
  const task: Task = {
    ...{
      upid,
      node: filed.node,
      type: order.type,
      id: String(filed.vmid),
      account: order.account,
      pid,
      pstart,
      started,
    },
    endsAt: order.dies === undefined ? started + seconds * 1_000 : started,
    isOver: false,
    exitstatus: order.dies ?? (isDoomed ? failureOf(order.type) : 'OK'),
    ...{ vmid: vm.vmid, snapname: order.snapname ?? null, starts: order.starts ?? false },
  };
  state.tasks.push(task);
  if (order.dies !== undefined) {
    task.isOver = true;
    world.save();
    return upid;
  }
  vm.lock = order.lock ?? vm.lock;
  world.save(task);
  return upid;
}

/**
 * Tells whether a task is running for the VM. A VM that starts or stops has no lock, but can have only one task at a
 * time.
 */
export const isBusy = ({ tasks }: ProxmoxState, vm: Vm): boolean =>
  tasks.some(({ vmid, isOver }) => vmid === vm.vmid && !isOver);
