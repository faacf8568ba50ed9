import { type Call, type PathValues, pathValue, type Reply } from '../protocol/call';
import { dataReply, died, unreachable, unverified } from './proxmox-errors';
import { type AccountRoute, apiAt, nodeNames, type ProxmoxWorld, storages, type Vm } from './proxmox-world';
import { allowQuery, showResource, showStatus, showTask, showTaskStatus } from './shapes';

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

/** Routes of the cluster, its nodes, and a node's tasks. */
export const clusterRoutes: readonly AccountRoute[] = [
  apiAt('GET', '/version', () => dataReply({ version: '8.4.1', release: '8.4', repoid: '2a5fa54a8503f96d' })),
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
    return dataReply(vmsOf(world, account).map((vm) => showResource(vm, world.downNodes.has(vm.node))));
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
