import { timeLimit } from '@drydock/process';
import { z } from 'zod';
import type { Change, ComputeReason, Machine, MachineSnapshot, ProviderAction } from '../compute.types';
import { ComputeError, type ComputeReader } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import type { HttpAnswer } from '../http/provider-http';
import { retryAfterSeconds } from '../http/rate-budget';
import {
  addressesOf,
  configSchema,
  dataOf,
  descendantsOf,
  errorSchema,
  interfacesSchema,
  keepsNewestOnly,
  machineOf,
  type Resource,
  resourceSchema,
  snapshotOf,
  snapshotSchema,
  statusSchema,
  storageSchema,
  storagesOf,
  type Task,
  taskSchema,
  taskStatusSchema,
  upidSchema,
  vmidOf,
} from './proxmox-shapes';

/** Whether the text is the number of a VM. Any other text names no VM, so the driver does not send it. */
const isVmid = (id: string): boolean => /^[1-9]\d{2,8}$/.test(id);

/** All VMs that the token may see, each with its present node. */
async function listVms(api: ProviderApi, signal?: AbortSignal): Promise<Resource[]> {
  const resources = await api.read(['cluster', 'resources'], [['type', 'vm']], dataOf(z.array(resourceSchema)), signal);
  return (resources ?? []).filter(({ type }) => type === 'qemu');
}

export async function findVm(api: ProviderApi, machineId: string, signal?: AbortSignal): Promise<Resource | null> {
  if (!isVmid(machineId)) return null;
  return (await listVms(api, signal)).find(({ vmid }) => String(vmid) === machineId) ?? null;
}

/**
 * The VM of an order. Until its clone is complete, a VM has its number and a lock but no name. So a clone whose answer
 * was lost is found by its number and its lock. A VM whose node sends no statistics is listed without its name, so its
 * name is read from its node.
 */
export async function findOrderedVm(api: ProviderApi, name: string, signal?: AbortSignal): Promise<Resource | null> {
  const vms = await listVms(api, signal);
  const isOrdered = (vm: Resource): boolean => vm.name === name || (vm.lock === 'clone' && vm.vmid === vmidOf(name));
  const ordered = vms.find(isOrdered);
  if (ordered !== undefined) return ordered;
  const nameless = vms.find((vm) => vm.name === undefined && vm.vmid === vmidOf(name));
  const status = nameless === undefined ? null : await readStatus(api, nameless, signal);
  return nameless !== undefined && status?.name === name ? nameless : null;
}

/** The number of VMs that are read at the same time. */
const atOnceMax = 8;

const pathOf = ({ node, vmid }: Resource, ...rest: string[]) => ['nodes', node, 'qemu', vmid, ...rest];

const readStatus = (api: ProviderApi, vm: Resource, signal?: AbortSignal) =>
  api.read(pathOf(vm, 'status', 'current'), [], dataOf(statusSchema), signal);

/** The time limit of a call to the guest's agent. If a guest hangs, the provider answers after three seconds. */
const agentMsMax = 5_000;

/** The addresses that the guest reports. The list is empty if no agent answers. */
async function readAddresses(api: ProviderApi, vm: Resource, signal?: AbortSignal): Promise<string[]> {
  if (vm.status === 'stopped') return [];
  const ends = timeLimit(agentMsMax);
  const either = signal === undefined ? ends : AbortSignal.any([ends, signal]);
  try {
    const said = interfacesSchema.safeParse(
      await api.read(pathOf(vm, 'agent', 'network-get-interfaces'), [], dataOf(z.unknown()), either),
    );
    return said.success ? addressesOf(said.data) : [];
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ComputeError || ends.aborted) return [];
    throw error;
  }
}

const unknownMachine = (resource: Resource): Machine => {
  const { vmid, lock } = resource;
  return machineOf({ resource, status: { vmid, lock, status: 'unknown' }, config: null, addresses: [] });
};

/**
 * Reads the VM from its node, because the state in the cluster's list may be wrong: while a node sends no statistics,
 * the list shows its VMs as `unknown`, although they run and the node answers.
 */
async function readVm(api: ProviderApi, vm: Resource, isWhole: boolean, signal?: AbortSignal): Promise<Machine | null> {
  const [status, config, addresses] = await Promise.all([
    readStatus(api, vm, signal),
    isWhole ? api.read(pathOf(vm, 'config'), [], dataOf(configSchema), signal) : null,
    readAddresses(api, vm, signal),
  ]);
  if (status === null) return null;
  if (status.vmid !== vm.vmid) throw new ComputeError('foreign', `asked for VM ${vm.vmid}, told of another`);
  return machineOf({ resource: vm, status, config, addresses });
}

async function readMachine(api: ProviderApi, machineId: string, signal?: AbortSignal): Promise<Machine | null> {
  const vm = await findVm(api, machineId, signal);
  if (vm === null) return null;
  const machine = await readVm(api, vm, true, signal);
  if (machine !== null) return machine;
  // The VM may have moved to another node meanwhile.
  const moved = await findVm(api, machineId, signal);
  return moved === null ? null : await readVm(api, moved, true, signal);
}

/**
 * Lists all machines, without templates. A machine whose read is `unavailable` or `foreign` is listed as unknown. Any
 * other failure is thrown. If every read fails, the first failure is thrown.
 */
async function listMachines(api: ProviderApi, signal?: AbortSignal): Promise<Machine[]> {
  const vms = (await listVms(api, signal)).filter(({ template }) => template !== 1);
  const failures: ComputeError[] = [];
  const readVmOrNote = (vm: Resource): Promise<Machine | null> =>
    readVm(api, vm, false, signal).catch((error: unknown) => {
      if (!(error instanceof ComputeError) || (error.reason !== 'unavailable' && error.reason !== 'foreign'))
        throw error;
      failures.push(error);
      return unknownMachine(vm);
    });
  const machines: (Machine | null)[] = [];
  for (let at = 0; at < vms.length; at += atOnceMax)
    machines.push(...(await Promise.all(vms.slice(at, at + atOnceMax).map(readVmOrNote))));
  const [failure] = failures;
  if (failure !== undefined && failures.length === vms.length) throw failure;
  return machines.filter((machine) => machine !== null);
}

async function listSnapshots(api: ProviderApi, machineId: string, signal?: AbortSignal): Promise<MachineSnapshot[]> {
  const vm = await findVm(api, machineId, signal);
  if (vm === null) return [];
  const listed = await api.read(pathOf(vm, 'snapshot'), [], dataOf(z.array(snapshotSchema)), signal);
  const snapshots = (listed ?? []).filter(({ name }) => name !== 'current');
  const hasChains = snapshots.some(({ parent }) => parent !== undefined);
  const isInTheWay = hasChains && (await onlyNewest(api, vm, signal));
  return snapshots
    .map((snapshot) => snapshotOf(snapshot, isInTheWay ? descendantsOf(snapshot.name, snapshots) : []))
    .sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime());
}

async function onlyNewest(api: ProviderApi, vm: Resource, signal?: AbortSignal): Promise<boolean> {
  const [config, types] = await Promise.all([
    api.read(pathOf(vm, 'config'), [], dataOf(configSchema), signal),
    api.read(['storage'], [], dataOf(z.array(storageSchema)), signal),
  ]);
  return config !== null && keepsNewestOnly(storagesOf(config), types ?? []);
}

export const proxmoxReader = (api: ProviderApi): ComputeReader => ({
  provider: 'proxmox',
  // `compute:rebuild` is missing, because a VM cannot be rebuilt in place.
  capabilities: ['compute:snapshots', 'compute:ssh_keys'],
  readMachine: (machineId, signal) => readMachine(api, machineId, signal),
  findMachine: async (name, signal) => {
    const vm = await findOrderedVm(api, name, signal);
    return vm === null ? null : await readMachine(api, String(vm.vmid), signal);
  },
  listMachines: (signal) => listMachines(api, signal),
  listSnapshots: (machineId, signal) => listSnapshots(api, machineId, signal),
  // A snapshot is read by way of its VM, so a snapshot of another VM is not found.
  readSnapshot: async (machineId, snapshotId, signal) =>
    (await listSnapshots(api, machineId, signal)).find(({ id }) => id === snapshotId) ?? null,
  // A checkpoint lists the worker's tasks. The account of a reader may lack the right to see these tasks.
  prepareEarly: async () => null,
  readRunningAction: async (machineId, signal) => {
    const vm = await findVm(api, machineId, signal);
    const [task] = vm === null ? [] : await listTasks(api, { node: vm.node, machineId }, { source: 'active' }, signal);
    return task === undefined ? null : actionOf(task.upid, null);
  },
  readAction: async (machineId, actionId, signal) =>
    isMaking(actionId)
      ? makingOf(await readMachine(api, machineId, signal), actionId)
      : await readTask(api, machineId, actionId, signal),
});

/**
 * The action of a clone whose answer was lost. The provider files the clone's task under the template, among the clones
 * of all orders. So the lock of the new VM tells whether the clone is complete.
 */
export const makingAction = 'drydock:making';
const isMaking = (actionId: string): boolean => actionId === makingAction;

const makingOf = (machine: Machine | null, id: string) => ({
  ...{ id, command: 'qmclone', progress: null },
  state: machine === null ? ('failed' as const) : machine.isLocked ? ('running' as const) : ('succeeded' as const),
  failure: machine === null ? { reason: 'machine_not_found' as const, internal: 'the VM is gone' } : null,
});

/**
 * The reasons for the provider's error texts, because the provider has no error codes. A text comes with a status 500
 * or as the result of a task. A 500 with any other text leaves open whether the provider has accepted the call.
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
 * The error for a definite refusal. Null for any other answer, after which a read counts as `unavailable` and a change
 * as `ambiguous`.
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

/** The VM's tasks on one node, newest first, at most 50. Each node lists only its own tasks. */
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

const actionOf = (upid: string, ended: string | null): ProviderAction => ({
  ...{ id: upid, command: partsOf(upid).type, progress: null },
  state: ended === null ? 'running' : isSuccess(ended) ? 'succeeded' : 'failed',
  failure:
    ended === null || isSuccess(ended)
      ? null
      : { reason: reasonOf(ended) ?? 'rejected', internal: ended.slice(0, 500) },
});

async function readTask(
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
