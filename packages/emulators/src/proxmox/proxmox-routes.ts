import { type Call, type PathValues, pathValue, type Reply } from '../protocol/call';
import {
  type AccountRoute,
  apiAt,
  isBusy,
  nodeNames,
  type ProxmoxWorld,
  requireVm,
  startTask,
  storages,
  type Vm,
} from './proxmox-world';
import {
  allowQuery,
  bodySchemas,
  dataReply,
  died,
  noSuchUri,
  parseForm,
  showConfig,
  showResource,
  showSnapshots,
  showStatus,
  showTask,
  showTaskStatus,
  unreachable,
  unverified,
} from './shapes';

/** Returns the VMs and templates that the account may see. */
const vmsOf = ({ state }: ProxmoxWorld, account: string): Vm[] =>
  state.vms.filter((vm) => vm.account === null || vm.account === account);

/** Finds a node. @throws Refusal 500 for an unknown node, 595 for an unreachable node */
function requireNode({ downNodes }: ProxmoxWorld, values: PathValues): string {
  const node = pathValue(values, 'node');
  if (!nodeNames.includes(node))
    throw died(`hostname lookup '${node}' failed - failed to get address info for: ${node}`);
  if (downNodes.has(node)) throw unreachable();
  return node;
}

/** Answers the lowest free number over all accounts, or the requested number if it is free. */
function nextId({ state }: ProxmoxWorld, call: Call): Reply {
  allowQuery(call, ['vmid']);
  const isFree = (vmid: number): boolean => !state.vms.some((vm) => vm.vmid === vmid);
  const wanted = call.query.get('vmid');
  if (wanted !== null && !isFree(Number(wanted))) throw unverified({ vmid: `VM ${wanted} already exists` });
  let free = 100;
  while (!isFree(free)) free += 1;
  return dataReply(wanted ?? String(free));
}

const clusterRoutes: readonly AccountRoute[] = [
  apiAt('GET', '/version', ({ resizesAtOnce }) =>
    dataReply(
      resizesAtOnce
        ? { version: '7.4-19', release: '7.4', repoid: 'f98bf8d4' }
        : { version: '8.4.1', release: '8.4', repoid: '2a5fa54a8503f96d' },
    ),
  ),
  apiAt('GET', '/nodes', ({ downNodes }) =>
    dataReply(
      nodeNames.map((node) => ({
        node,
        id: `node/${node}`,
        type: 'node',
        status: downNodes.has(node) ? 'offline' : 'online',
      })),
    ),
  ),
  apiAt('GET', '/nodes/:node/qemu', (world, account, call, values) => {
    allowQuery(call, ['full']);
    const node = requireNode(world, values);
    return dataReply(
      vmsOf(world, account)
        .filter((vm) => vm.node === node)
        .map(showStatus),
    );
  }),
  apiAt('GET', '/nodes/:node/storage', (world, _account, call, values) => {
    allowQuery(call, ['storage', 'content', 'enabled', 'target', 'format']);
    requireNode(world, values);
    return dataReply(storages.map((storage) => ({ ...storage, active: 1, enabled: 1, shared: 0 })));
  }),
  apiAt('GET', '/cluster/nextid', (world, _account, call) => nextId(world, call)),
  apiAt('GET', '/cluster/resources', (world, account, call) => {
    allowQuery(call, ['type']);
    const { downNodes, silentNodes } = world;
    const isSilent = ({ node }: Vm): boolean => downNodes.has(node) || silentNodes.has(node);
    return dataReply(vmsOf(world, account).map((vm) => showResource(vm, isSilent(vm))));
  }),
  apiAt('GET', '/storage', (_world, _account, call) => {
    allowQuery(call, ['type']);
    return dataReply(storages);
  }),
  apiAt('GET', '/nodes/:node/tasks', ({ state }, account, call, values) => {
    allowQuery(call, ['vmid', 'source', 'typefilter', 'limit', 'start', 'since', 'errors']);
    const [vmid, source, type] = ['vmid', 'source', 'typefilter'].map((name) => call.query.get(name));
    const tasks = state.tasks.filter(
      (task) =>
        task.node === pathValue(values, 'node') &&
        (task.account === account || task.account === null) &&
        (vmid === null || task.id === vmid) &&
        (type === null || task.type === type) &&
        // Without the parameter `source`, only finished tasks are listed.
        (source === 'all' || (source === 'active') === !task.isOver),
    );
    return dataReply(
      tasks
        .reverse()
        .slice(0, Number(call.query.get('limit') ?? 50))
        .map(showTask),
    );
  }),
  apiAt('GET', '/nodes/:node/tasks/:upid/status', ({ state }, account, _call, values) => {
    const upid = pathValue(values, 'upid');
    const task = state.tasks.find(
      (candidate) => candidate.upid === upid && candidate.node === pathValue(values, 'node'),
    );
    if (task === undefined || (task.account ?? account) !== account) throw died(`no such task '${upid}'`);
    return dataReply(showTaskStatus(task));
  }),
];

const vmAt = (world: ProxmoxWorld, account: string, values: PathValues): Vm =>
  requireVm(world, account, pathValue(values, 'node'), pathValue(values, 'vmid'));

function refuseLocked({ lock }: Vm): void {
  if (lock !== null) throw died(`VM is locked (${lock})`);
}

function clone(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  const order = parseForm(bodySchemas.clone, call);
  const source = vmAt(world, account, values);
  refuseLocked(source);
  if (order.target !== undefined && !nodeNames.includes(order.target))
    throw unverified({ target: `no such cluster node '${order.target}'` });
  if (world.state.vms.some(({ vmid }) => vmid === order.newid))
    throw died(`unable to create VM ${order.newid}: config file already exists`);
  const vm: Vm = {
    ...{
      ...source,
      account,
      vmid: order.newid,
      node: order.target ?? source.node,
      isTemplate: false,
      isProtected: false,
      parent: null,
      snapshots: [],
    },
    ...{
      name: order.name ?? `Copy-of-VM-${source.name}`,
      description: order.description ?? '',
      status: 'stopped',
      qmpstatus: 'stopped',
    },
    // These addresses are reserved for documentation.
    addresses: [`192.0.2.${1 + (order.newid % 254)}`, `2001:db8::${(order.newid % 65_535).toString(16)}`],
    disk: { ...source.disk },
  };
  world.state.vms.push(vm);
  return dataReply(startTask(world, vm, { type: 'qmclone', account, filedUnder: source, lock: 'clone' }));
}

function change(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  const wanted = parseForm(bodySchemas.config, call);
  const vm = vmAt(world, account, values);
  refuseLocked(vm);
  vm.cores = wanted.cores ?? vm.cores;
  vm.memoryMb = wanted.memory ?? vm.memoryMb;
  vm.description = wanted.description ?? vm.description;
  vm.ciuser = wanted.ciuser ?? vm.ciuser;
  vm.sshkeys = wanted.sshkeys ?? vm.sshkeys;
  world.save();
  return dataReply(null);
}

function resize(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  const { disk, size } = parseForm(bodySchemas.resize, call);
  const vm = vmAt(world, account, values);
  refuseLocked(vm);
  if (disk !== 'scsi0') throw died(`disk '${disk}' does not exist`);
  const wantedGb = Number.parseInt(size, 10);
  if (wantedGb < vm.diskGb) throw died('shrinking disks is not supported');
  if (!world.resizesAtOnce) {
    const dies = isBusy(world.state, vm) ? { dies: `can't lock file '${lockFileOf(vm)}' - got timeout` } : {};
    return dataReply(startTask(world, vm, { type: 'resize', account, diskGb: wantedGb, ...dies }));
  }
  vm.diskGb = wantedGb;
  world.save();
  return dataReply(null);
}

const lockFileOf = ({ vmid }: Vm): string => `/var/lock/qemu-server/lock-${vmid}.conf`;

function setPower(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  parseForm(bodySchemas.power, call);
  const vm = vmAt(world, account, values);
  const order = pathValue(values, 'order');
  if (!['start', 'stop', 'shutdown', 'reboot', 'reset'].includes(order)) throw noSuchUri();
  refuseLocked(vm);
  if (vm.isTemplate) throw died("you can't start a vm if it's a template");
  const dies = powerDies(vm, order) ?? (isBusy(world.state, vm) ? `can't lock file - got timeout` : null);
  return dataReply(startTask(world, vm, { type: `qm${order}`, account, ...(dies === null ? {} : { dies }) }));
}

function powerDies({ vmid, status }: Vm, order: string): string | null {
  const isRunning = status === 'running';
  if (order === 'start' && isRunning) return `VM ${vmid} already running`;
  return (order === 'reboot' || order === 'reset') && !isRunning ? `VM ${vmid} not running` : null;
}

function destroy(world: ProxmoxWorld, account: string, call: Call, values: PathValues): Reply {
  allowQuery(call, ['purge', 'skiplock', 'destroy-unreferenced-disks']);
  const vm = vmAt(world, account, values);
  refuseLocked(vm);
  if (vm.isProtected) throw died(`can't remove VM ${vm.vmid} - protection mode enabled`);
  if (vm.status === 'running' || isBusy(world.state, vm)) throw died(`VM ${vm.vmid} is running - destroy failed`);
  return dataReply(startTask(world, vm, { type: 'qmdestroy', account, lock: 'destroyed' }));
}

function tellAddresses(world: ProxmoxWorld, account: string, _call: Call, values: PathValues): Reply {
  const vm = vmAt(world, account, values);
  if (vm.addresses === null) throw died('No QEMU guest agent configured');
  if (vm.status !== 'running') throw died(`VM ${vm.vmid} is not running`);
  const tell = (address: string) => ({
    'ip-address': address,
    'ip-address-type': address.includes(':') ? 'ipv6' : 'ipv4',
    prefix: address.includes(':') ? 64 : 24,
  });
  const loopback = {
    name: 'lo',
    'hardware-address': '00:00:00:00:00:00',
    'ip-addresses': ['127.0.0.1', '::1'].map(tell),
  };
  const eth0 = {
    name: 'eth0',
    'hardware-address': 'bc:24:11:00:00:01',
    'ip-addresses': [...vm.addresses, 'fe80::1'].map(tell),
  };
  return dataReply({ result: [loopback, eth0] });
}

const vmPath = '/nodes/:node/qemu/:vmid';

const vmRoutes: readonly AccountRoute[] = [
  apiAt('GET', `${vmPath}/status/current`, (world, account, _call, values) =>
    dataReply(showStatus(vmAt(world, account, values))),
  ),
  apiAt('GET', `${vmPath}/config`, (world, account, _call, values) =>
    dataReply(showConfig(vmAt(world, account, values))),
  ),
  apiAt('GET', `${vmPath}/agent/network-get-interfaces`, tellAddresses),
  apiAt('POST', `${vmPath}/clone`, clone),
  apiAt('PUT', `${vmPath}/config`, change),
  apiAt('PUT', `${vmPath}/resize`, resize),
  apiAt('POST', `${vmPath}/status/:order`, setPower),
  apiAt('DELETE', vmPath, destroy),
];

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

/**
 * Returns the error that a rollback's task would find before it changes anything, or null. The call itself is answered
 * with 200 even if the task fails.
 */
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

const snapshotPath = `${vmPath}/snapshot`;

const snapshotRoutes: readonly AccountRoute[] = [
  apiAt('GET', snapshotPath, (world, account, _call, values) => dataReply(showSnapshots(vmAt(world, account, values)))),
  apiAt('POST', snapshotPath, take),
  apiAt('DELETE', `${snapshotPath}/:snapname`, remove),
  apiAt('POST', `${snapshotPath}/:snapname/rollback`, rollBack),
];

export const proxmoxRoutes: readonly AccountRoute[] = [...clusterRoutes, ...snapshotRoutes, ...vmRoutes];
