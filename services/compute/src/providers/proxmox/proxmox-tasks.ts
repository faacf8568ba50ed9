import { z } from 'zod';
import type { ProviderAction } from '../compute.types';
import { ComputeError } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import { reasonOf } from './proxmox-refusals';
import { dataOf, type Task, taskSchema, taskStatusSchema, upidSchema } from './proxmox-shapes';

/** The parts of a UPID that are used. Its form is UPID:node:pid:pstart:starttime:type:id:user: */
function partsOf(upid: string): { node: string; type: string; id: string } {
  const [, node = '', , , , type = '', id = ''] = upid.split(':');
  return { node, type, id };
}

/** A clone is filed under the VM that was cloned. */
const concerns = (upid: string, machineId: string): boolean =>
  partsOf(upid).id === machineId || partsOf(upid).type === 'qmclone';

/** The VM's tasks on one node, newest first, 50 at most: each node keeps its own, for weeks. */
export async function listTasks(
  api: ProviderApi,
  { node, machineId }: { node: string; machineId: string },
  { source, type }: { source: 'active' | 'all'; type?: string },
  signal?: AbortSignal,
): Promise<Task[]> {
  const query = [
    ['vmid', machineId],
    ['source', source],
    ['limit', '50'],
    ...(type === undefined ? [] : [['typefilter', type] as const]),
  ] as const;
  return (await api.read(['nodes', node, 'tasks'], query, dataOf(z.array(taskSchema)), signal)) ?? [];
}

/** Success is `OK` or `WARNINGS: n`; any other end is the error's text. */
const isSuccess = (exitstatus: string): boolean => exitstatus === 'OK' || /^WARNINGS: \d+$/.test(exitstatus);

export const actionOf = (upid: string, ended: string | null): ProviderAction => ({
  ...{ id: upid, command: partsOf(upid).type, progress: null },
  state: ended === null ? 'running' : isSuccess(ended) ? 'succeeded' : 'failed',
  failure:
    ended === null || isSuccess(ended)
      ? null
      : { reason: reasonOf(ended) ?? 'rejected', internal: ended.slice(0, 500) },
});

export async function readTask(
  api: ProviderApi,
  machineId: string,
  upid: string,
  signal?: AbortSignal,
): Promise<ProviderAction> {
  if (!upidSchema.safeParse(upid).success) throw new ComputeError('action_not_found', 'a task has a UPID');
  if (!concerns(upid, machineId)) throw new ComputeError('foreign', `task ${upid} is not of VM ${machineId}`);
  const { node, id } = partsOf(upid);
  const task = await api.read(['nodes', node, 'tasks', upid, 'status'], [], dataOf(taskStatusSchema), signal);
  if (task === null) throw new ComputeError('action_not_found', `no task ${upid}`);
  if (task.upid !== upid || task.id !== id)
    throw new ComputeError('foreign', `asked for task ${upid}, told of another`);
  return actionOf(upid, task.status === 'running' ? null : (task.exitstatus ?? 'unexpected status'));
}
