import { z } from 'zod';
import type { Change, ComputeReason, ProviderAction } from '../compute.types';
import { ComputeError } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import type { HttpAnswer } from '../http/provider-http';
import { retryAfterSeconds } from '../http/rate-budget';
import { dataOf, errorSchema, type Task, taskSchema, taskStatusSchema, upidSchema } from './proxmox-shapes';

/**
 * The reasons for the provider's error texts. The provider has no error codes; a text stands in an answer with status
 * 500 or at the end of a task. Any other text leaves open whether the provider has accepted the call.
 */
const reasonOfText: ReadonlyArray<readonly [RegExp, ComputeReason]> = [
  [/^Configuration file '.*' does not exist/, 'machine_not_found'],
  [/^snapshot '.*' does not exist/, 'snapshot_not_found'],
  [/^can't rollback, snapshot '.*' does not exist on/, 'snapshot_not_found'],
  [/^can't rollback, '.*' is not most recent snapshot/, 'newer_snapshots'],
  [/^unable to rollback to incomplete snapshot/, 'snapshot_not_ready'],
  [/^VM is locked/, 'locked'],
  [/can't lock file '.*' - got timeout/, 'locked'],
  [/ is running - destroy failed/, 'locked'],
  [/^VM \d+ not running/, 'not_running'],
  [/^VM quit\/powerdown failed/, 'guest_unresponsive'],
  [/^you can't rollback if vm is a template/, 'protected'],
  [/^can't remove VM \d+ - protection mode enabled/, 'protected'],
  [/^no such task/, 'action_not_found'],
  // The guest has no agent, or its agent does not answer.
  [/guest agent/i, 'unsupported'],
  [/qmp command 'guest-\S+' failed/, 'unsupported'],
  [/^VM \d+ is not running/, 'unsupported'],
];

/** For an order, this text means that an earlier call whose answer was lost has made the VM with the order's number. */
const alreadyThere = /config file already exists/;

const reasonOf = (text: string): ComputeReason | null =>
  reasonOfText.find(([pattern]) => pattern.test(text))?.[1] ?? null;

/**
 * The error for a definite refusal. Null for any other answer, which the caller judges by whether the call was a read
 * or a change.
 */
export function refusalIn(
  { status, statusText, headers, json }: HttpAnswer,
  kind?: Change['kind'],
): ComputeError | null {
  if (status === 429) return new ComputeError('rate_limited', '429', { retryAfterSeconds: retryAfterSeconds(headers) });
  const { data: said } = errorSchema.safeParse(json);
  const text = (said?.message ?? statusText).trim();
  const told = `${status} ${text.slice(0, 500)} ${JSON.stringify(said?.errors ?? {}).slice(0, 500)}`;
  if (status === 401 || status === 403) return new ComputeError('credentials_refused', told);
  if (status === 400) return new ComputeError(kind === 'create' ? 'order_refused' : 'rejected', told);
  if (status === 501) return new ComputeError('rejected', told);
  if (status !== 500) return null;
  if (kind === 'create' && alreadyThere.test(text)) return new ComputeError('ambiguous', told);
  const reason = reasonOf(text);
  return reason === null
    ? null
    : new ComputeError(kind === 'create' && reason === 'machine_not_found' ? 'order_refused' : reason, told);
}

/** The parts of a UPID that are used. Its form is UPID:node:pid:pstart:starttime:type:id:user: */
function partsOf(upid: string): { node: string; type: string; id: string } {
  const [, node = '', , , , type = '', id = ''] = upid.split(':');
  return { node, type, id };
}

/**
 * Whether the task may concern this VM. The UPID of a clone names the template and not the new VM, so the task of any
 * clone counts.
 */
const concerns = (upid: string, machineId: string): boolean =>
  partsOf(upid).id === machineId || partsOf(upid).type === 'qmclone';

/** The VM's tasks on one node, newest first, at most 50. Each node keeps its own tasks for weeks. */
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

/** Whether a task has succeeded, by its status: `OK` or `WARNINGS: n` for success, otherwise the text of the error. */
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
