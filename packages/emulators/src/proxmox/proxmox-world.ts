import { z } from 'zod';
import { diskSchema } from '../protocol/admin-routes';
import type { Call, PathValues, Reply } from '../protocol/call';
import { type Clock, clockAnchorSchema } from '../protocol/clock';
import { type LedgerFile, ledgerEntrySchema, type StateFile } from '../protocol/state-file';
import { died, forbidden, unreachable } from './shapes';

const snapshotSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  /** Seconds since 1970, the unit of Proxmox. */
  snaptime: z.int(),
  parent: z.string().nullable(),
  /** `prepare` or `delete` while the snapshot is incomplete, otherwise null. */
  snapstate: z.string().nullable(),
  disk: diskSchema,
});

const vmSchema = z.strictObject({
  vmid: z.int(),
  /** The owner, or null for a template, which every account may clone. */
  account: z.string().nullable(),
  node: z.string(),
  name: z.string(),
  isTemplate: z.boolean(),
  status: z.enum(['running', 'stopped']),
  /** QEMU's state of a running VM, such as `running` or `paused`. */
  qmpstatus: z.string(),
  lock: z.string().nullable(),
  /** Set by staff. The deletion of a protected VM is refused. */
  isProtected: z.boolean().default(false),
  description: z.string(),
  cores: z.int(),
  memoryMb: z.int(),
  diskGb: z.int(),
  storage: z.string(),
  /** Whether the VM has a drive from which cloud-init reads its settings. */
  hasCloudInit: z.boolean().default(false),
  ciuser: z.string().default(''),
  /** Lines of `authorized_keys`, URL-encoded. */
  sshkeys: z.string().default(''),
  /** The addresses that the guest agent reports, or null without an agent. */
  addresses: z.array(z.string()).nullable(),
  /** The snapshot from which the present state derives. */
  parent: z.string().nullable(),
  snapshots: z.array(snapshotSchema),
  disk: diskSchema,
});

const taskSchema = z.strictObject({
  upid: z.string(),
  node: z.string(),
  type: z.string(),
  /** The VM under which the task is listed. A clone is listed under its source. */
  id: z.string(),
  /** The account that started the task, or null for staff. Every account sees the tasks of staff. */
  account: z.string().nullable(),
  pid: z.int(),
  pstart: z.int(),
  /** Milliseconds since 1970 in the emulator's time. */
  started: z.number(),
  endsAt: z.number(),
  isOver: z.boolean(),
  /** The result of the task: `OK` or an error. */
  exitstatus: z.string(),
  /** The VM that the task changes. `snapname`, `starts` and `diskGb` are the other arguments of the task. */
  vmid: z.int(),
  snapname: z.string().nullable(),
  starts: z.boolean(),
  /** The new size of the disk, or null if the task does not change the size. */
  diskGb: z.int().nullable().default(null),
});

export const proxmoxStateSchema = z.strictObject({
  clock: clockAnchorSchema,
  lastPid: z.int(),
  lastEntry: ledgerEntrySchema.nullable(),
  vms: z.array(vmSchema),
  tasks: z.array(taskSchema),
});

type ProxmoxState = z.infer<typeof proxmoxStateSchema>;
export type Vm = z.infer<typeof vmSchema>;
export type Snapshot = z.infer<typeof snapshotSchema>;
export type Task = z.infer<typeof taskSchema>;

export const nodeNames = ['pve1', 'pve2'];

/**
 * The storages of the cluster. The API does not say which of them can only roll back to the newest snapshot, so a
 * driver must know this limit of a storage.
 */
export const storages = [
  { storage: 'local', type: 'dir', content: 'iso,vztmpl,backup' },
  { storage: 'local-lvm', type: 'lvmthin', content: 'images,rootdir' },
  { storage: 'local-zfs', type: 'zfspool', content: 'images,rootdir' },
];

const template = (vmid: number, name: string, storage: string, hasCloudInit: boolean): Vm => ({
  ...{
    vmid,
    account: null,
    node: 'pve1',
    name,
    isTemplate: true,
    status: 'stopped',
    qmpstatus: 'stopped',
    lock: null,
    isProtected: false,
    description: '',
  },
  ...{ cores: 1, memoryMb: 1_024, diskGb: 10, storage, addresses: null, parent: null, snapshots: [] },
  ...{ hasCloudInit, ciuser: '', sshkeys: '' },
  disk: { '/etc/os-release': `NAME=${name}\n` },
});

export const templates = (): Vm[] => [
  template(9_000, 'debian-12', 'local-lvm', true),
  template(9_001, 'debian-12-zfs', 'local-zfs', false),
];

/** The duration of each type of task in seconds of the emulator's time. */
export type TaskSeconds = Readonly<Record<string, number>>;

/** The duration of each type of task in seconds, about as on a small cluster. Other types take one second. */
export const usualTaskSeconds: TaskSeconds = {
  qmclone: 8,
  qmstart: 2,
  qmstop: 1,
  qmshutdown: 3,
  qmreboot: 3,
  qmreset: 1,
  qmsnapshot: 4,
  qmdelsnapshot: 2,
  qmrollback: 10,
  qmdestroy: 2,
};

/** Returns shorter durations for a demonstration, where the emulator's time must equal real time. */
export const fasterTasks = (speed: number): TaskSeconds =>
  Object.fromEntries(Object.entries(usualTaskSeconds).map(([type, seconds]) => [type, seconds / speed]));

/** Ends a task. Applies its effect if the task has succeeded. */
function endTask(state: ProxmoxState, task: Task): void {
  task.isOver = true;
  const vm = state.vms.find(({ vmid }) => vmid === task.vmid);
  if (vm === undefined) return;
  const hasFailed = task.exitstatus !== 'OK';
  // In Proxmox a VM keeps the lock of a failed rollback until staff remove the lock.
  if (!hasFailed || task.type !== 'qmrollback') vm.lock = null;
  if (hasFailed) failTask(state, vm, task);
  else effects[task.type]?.(vm, task, state);
}

const effects: Readonly<Record<string, (vm: Vm, task: Task, state: ProxmoxState) => void>> = {
  qmstart: (vm) => {
    if (vm.hasCloudInit && vm.sshkeys !== '')
      vm.disk[`/${vm.ciuser}/.ssh/authorized_keys`] = `${decodeURIComponent(vm.sshkeys)}\n`;
    setPower(vm, true);
  },
  qmreboot: (vm) => setPower(vm, true),
  qmreset: (vm) => setPower(vm, true),
  qmstop: (vm) => setPower(vm, false),
  qmshutdown: (vm) => setPower(vm, false),
  resize: (vm, { diskGb }) => {
    vm.diskGb = diskGb ?? vm.diskGb;
  },
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

export interface ProxmoxWorld {
  readonly state: ProxmoxState;
  readonly clock: Clock;
  readonly taskSeconds: TaskSeconds;
  /** Nodes that the other nodes cannot reach. */
  readonly downNodes: Set<string>;
  /** Nodes that send no statistics to the cluster and answer every call. */
  readonly silentNodes: Set<string>;
  /** True if the cluster resizes a disk within the call, as Proxmox VE 7 does, and not in a task. */
  resizesAtOnce: boolean;
  /**
   * Saves the state, and then writes an accepted task to the ledger. After a crash between the two writes, the next
   * start completes the ledger from the state.
   */
  save(taken?: Task): void;
  endDue(): void;
}

export function openWorld(
  state: ProxmoxState,
  {
    clock,
    file,
    ledger,
    taskSeconds,
  }: { clock: Clock; file: StateFile<ProxmoxState>; ledger: LedgerFile; taskSeconds: TaskSeconds },
): ProxmoxWorld {
  const save: ProxmoxWorld['save'] = (task) => {
    state.clock = clock.anchor;
    if (task === undefined) return file.write(state);
    const entry = {
      ...{
        seq: (state.lastEntry?.seq ?? 0) + 1,
        time: new Date(task.started).toISOString(),
        project: task.account ?? 'staff',
      },
      ...{ resource: String(task.vmid), op: task.type, action_id: task.upid, detail: task.snapname ?? '' },
      ...{ fence: '0' as const, workflow_id: null, outcome: 'accepted' as const },
    };
    state.lastEntry = entry;
    file.write(state);
    ledger.append(entry);
  };
  const endDue = (): void => {
    const over = state.tasks.filter(({ isOver, endsAt }) => !isOver && endsAt <= clock.now());
    for (const task of over.sort((one, other) => one.endsAt - other.endsAt)) endTask(state, task);
    if (over.length > 0) save();
  };
  const nodes = { downNodes: new Set<string>(), silentNodes: new Set<string>() };
  return { state, clock, taskSeconds, ...nodes, resizesAtOnce: false, save, endDue };
}

/**
 * Finds a VM of the account, or a template, on a node. As in a real cluster, a node does not know the VMs of other
 * nodes. @throws Refusal 500, 403 or 595
 */
export function requireVm({ state, downNodes }: ProxmoxWorld, account: string, node: string, vmid: string): Vm {
  if (downNodes.has(node)) throw unreachable();
  const vm = state.vms.find((candidate) => String(candidate.vmid) === vmid && candidate.node === node);
  if (vm === undefined) throw died(`Configuration file 'nodes/${node}/qemu-server/${vmid}.conf' does not exist`);
  if (vm.account !== null && vm.account !== account) throw forbidden(`/vms/${vmid}`, 'VM.Audit');
  return vm;
}

/** Handles a call of the account to which its API token belongs. */
type AccountHandler = (world: ProxmoxWorld, account: string, call: Call, values: PathValues) => Reply;

export interface AccountRoute {
  method: string;
  pattern: string;
  handle: AccountHandler;
}

export const apiAt = (method: string, path: string, handle: AccountHandler): AccountRoute => ({
  method,
  pattern: `/api2/json${path}`,
  handle,
});

/** Texts in a VM's description that request failures: the type of task that fails, and extra seconds for each task. */
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
  diskGb?: number;
  /** The error with which the task ends at once. Proxmox accepts such a call, and only the task reports the error. */
  dies?: string;
}

/** Returns the user of a task. Proxmox records the full name of an API token. */
const userOf = (account: string | null): string => (account === null ? 'root@pam' : `${account}@pve!drydock`);

const hex = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0');

const failureOf = (type: string): string =>
  type === 'qmshutdown' || type === 'qmreboot'
    ? 'VM quit/powerdown failed - got timeout'
    : `command '/usr/bin/${type}' failed: exit code 1`;

/** Starts a task and returns its UPID. The ledger records each task that does not end with an error at once. */
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
    diskGb: order.diskGb ?? null,
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
