import { pathValue } from '../protocol/routes';
import { type AccountRoute, apiAt } from './account-route';
import { storages } from './cluster';
import { dataReply, died } from './proxmox-errors';
import { allowQuery } from './request-schemas';
import { showResource, showTask, showTaskStatus } from './shapes';

/** What is asked of the cluster as a whole, and of the tasks of one node. */
export const clusterRoutes: readonly AccountRoute[] = [
  apiAt('GET', '/cluster/resources', ({ state, downNodes }, account, call) => {
    allowQuery(call, ['type']);
    return dataReply(
      state.vms.filter((vm) => vm.account === null || vm.account === account).map((vm) => showResource(vm, downNodes.has(vm.node))),
    );
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
        // Without a source only what is over is listed.
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
    const task = state.tasks.find((candidate) => candidate.upid === upid && candidate.node === pathValue(values, 'node'));
    if (task === undefined || (task.account ?? account) !== account) throw died(`no such task '${upid}'`);
    return dataReply(showTaskStatus(task));
  }),
];
