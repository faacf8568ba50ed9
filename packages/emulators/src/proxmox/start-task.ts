import type { ProxmoxState, Task, Vm } from './proxmox-state';
import type { ProxmoxWorld } from './proxmox-world';

/** Orders that a VM's description can hold: the type of task that fails, and how much longer all of its tasks take. */
const failsIn = /"emulator\.fail":"([a-z]+)"/;
const slowIn = /"emulator\.slow-seconds":"(\d+)"/;

interface TaskOrder {
  type: string;
  account: string | null;
  /** The VM under which the task is listed, when it is not the VM that it works on. */
  filedUnder?: Vm;
  lock?: string;
  snapname?: string;
  starts?: boolean;
  /** The text with which the task ends at once, because only the task itself finds out that there is nothing to do. */
  dies?: string;
}

/** Tasks of a token carry its whole name. */
const userOf = (account: string | null): string => (account === null ? 'root@pam' : `${account}@pve!drydock`);

const hex = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0');

const failureOf = (type: string): string =>
  type === 'qmshutdown' || type === 'qmreboot'
    ? 'VM quit/powerdown failed - got timeout'
    : `command '/usr/bin/${type}' failed: exit code 1`;

/** Forks a worker and answers with its UPID. A task that does its work is written into the ledger. */
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

/** While a VM starts or stops it has no lock of its own. But it has only one task at a time. */
export const isBusy = ({ tasks }: ProxmoxState, vm: Vm): boolean =>
  tasks.some(({ vmid, isOver }) => vmid === vm.vmid && !isOver);
