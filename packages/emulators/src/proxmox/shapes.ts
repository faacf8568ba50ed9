import { createHash } from 'node:crypto';
import type { Snapshot, Task, Vm } from './proxmox-state';

const gib = 2 ** 30;

/** A clone that is not complete has a temporary configuration, which shows nothing but its lock. */
const isMaking = ({ lock }: Vm): boolean => lock === 'clone';
const nameOf = (vm: Vm): string => (isMaking(vm) ? `VM ${vm.vmid}` : vm.name);

export const showResource = (vm: Vm, isDown: boolean) => ({
  ...{
    id: `qemu/${vm.vmid}`,
    type: 'qemu',
    vmid: vm.vmid,
    node: vm.node,
    name: nameOf(vm),
    status: isDown ? 'unknown' : vm.status,
    template: vm.isTemplate ? 1 : 0,
  },
  ...{ maxcpu: vm.cores, maxmem: vm.memoryMb * 2 ** 20, maxdisk: vm.diskGb * gib },
  ...(vm.lock === null ? {} : { lock: vm.lock }),
});

export const showStatus = (vm: Vm) => ({
  ...{ vmid: vm.vmid, name: nameOf(vm), status: vm.status, qmpstatus: vm.qmpstatus, ha: { managed: 0 } },
  ...{ cpus: vm.cores, maxmem: vm.memoryMb * 2 ** 20, maxdisk: vm.diskGb * gib },
  ...(vm.isTemplate ? { template: 1 } : {}),
  ...(vm.lock === null ? {} : { lock: vm.lock }),
});

export const showConfig = (vm: Vm) =>
  isMaking(vm) ? { description: ' qmclone temporary file\n', lock: vm.lock, digest: digestOf(vm) } : showWhole(vm);

const showWhole = (vm: Vm) => ({
  ...{ name: vm.name, description: vm.description, cores: vm.cores, memory: String(vm.memoryMb), ostype: 'l26' },
  scsi0: `${vm.storage}:vm-${vm.vmid}-disk-0,size=${vm.diskGb}G`,
  digest: digestOf(vm),
  ...(vm.addresses === null ? {} : { agent: '1' }),
  ...(vm.isTemplate ? { template: 1 } : {}),
  ...(vm.isProtected ? { protection: 1 } : {}),
  ...(vm.parent === null ? {} : { parent: vm.parent }),
  ...(vm.lock === null ? {} : { lock: vm.lock }),
});

const showSnapshot = ({ name, description, snaptime, parent, snapstate }: Snapshot) => ({
  ...{ name, description, snaptime, vmstate: 0 },
  ...(parent === null ? {} : { parent }),
  ...(snapstate === null ? {} : { snapstate }),
});

export const showSnapshots = (vm: Vm) => [
  ...vm.snapshots.map(showSnapshot),
  {
    ...{
      name: 'current',
      description: 'You are here!',
      digest: digestOf(vm),
      running: vm.status === 'running' ? 1 : 0,
    },
    ...(vm.parent === null ? {} : { parent: vm.parent }),
  },
];

const digestOf = (vm: Vm): string =>
  createHash('sha1')
    .update(JSON.stringify([vm.name, vm.cores, vm.memoryMb, vm.lock]))
    .digest('hex');

const userOf = ({ account }: Task): string => (account === null ? 'root@pam' : `${account}@pve!drydock`);

export const showTaskStatus = (task: Task) => ({
  ...{
    upid: task.upid,
    node: task.node,
    pid: task.pid,
    pstart: task.pstart,
    starttime: Math.floor(task.started / 1_000),
  },
  ...{
    type: task.type,
    id: task.id,
    user: userOf(task),
    tokenid: 'drydock',
    status: task.isOver ? 'stopped' : 'running',
  },
  ...(task.isOver ? { exitstatus: task.exitstatus } : {}),
});

/** A task as lists show it. The text of its end is its status. */
export const showTask = (task: Task) => ({
  ...{
    upid: task.upid,
    node: task.node,
    pid: task.pid,
    pstart: task.pstart,
    starttime: Math.floor(task.started / 1_000),
  },
  ...{ type: task.type, id: task.id, user: userOf(task) },
  ...(task.isOver ? { status: task.exitstatus, endtime: Math.floor(task.endsAt / 1_000) } : {}),
});
