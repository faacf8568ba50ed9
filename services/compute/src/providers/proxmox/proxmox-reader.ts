import { z } from 'zod';
import type { Machine, MachineSnapshot } from '../compute.types';
import { ComputeError, type ComputeReader } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import {
  addressesOf,
  configSchema,
  dataOf,
  descendantsOf,
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
  vmidOf,
} from './proxmox-shapes';
import { actionOf, listTasks, readTask } from './proxmox-tasks';

/** Whether the text is the number of a VM. Any other text names no VM, so the driver does not send it. */
export const isVmid = (id: string): boolean => /^[1-9]\d{2,8}$/.test(id);

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
 * was lost is found by its number and its lock.
 */
export async function findOrderedVm(api: ProviderApi, name: string, signal?: AbortSignal): Promise<Resource | null> {
  const isOrdered = (vm: Resource): boolean => vm.name === name || (vm.lock === 'clone' && vm.vmid === vmidOf(name));
  return (await listVms(api, signal)).find(isOrdered) ?? null;
}

/** The number of VMs that are read at the same time. */
const atOnceMax = 8;

const pathOf = ({ node, vmid }: Resource, ...rest: string[]) => ['nodes', node, 'qemu', vmid, ...rest];

/** The time limit of a call to the guest's agent. If a guest hangs, the provider answers after three seconds. */
const agentMsMax = 5_000;

/** The addresses that the guest reports. The list is empty if no agent answers. */
async function readAddresses(api: ProviderApi, vm: Resource, signal?: AbortSignal): Promise<string[]> {
  if (vm.status !== 'running') return [];
  const ends = AbortSignal.timeout(agentMsMax);
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

const unknownMachine = (resource: Resource): Machine =>
  machineOf({ resource, status: { vmid: resource.vmid, status: 'unknown' }, config: null, addresses: [] });

async function look(api: ProviderApi, vm: Resource, isWhole: boolean, signal?: AbortSignal): Promise<Machine | null> {
  // The status is `unknown` while the node of the VM does not answer the cluster, so no further read can succeed.
  if (vm.status === 'unknown') return unknownMachine(vm);
  const [status, config, addresses] = await Promise.all([
    api.read(pathOf(vm, 'status', 'current'), [], dataOf(statusSchema), signal),
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
  const machine = await look(api, vm, true, signal);
  if (machine !== null) return machine;
  // The VM may have moved to another node meanwhile.
  const moved = await findVm(api, machineId, signal);
  return moved === null ? null : await look(api, moved, true, signal);
}

/**
 * Lists all machines. A machine that cannot be read is listed as unknown. If none can be read, the cluster counts as
 * unavailable.
 */
async function listMachines(api: ProviderApi, signal?: AbortSignal): Promise<Machine[]> {
  const vms = (await listVms(api, signal)).filter(({ template }) => template !== 1);
  const failures: ComputeError[] = [];
  const lookOrNote = (vm: Resource): Promise<Machine | null> =>
    look(api, vm, false, signal).catch((error: unknown) => {
      if (!(error instanceof ComputeError) || (error.reason !== 'unavailable' && error.reason !== 'foreign'))
        throw error;
      failures.push(error);
      return unknownMachine(vm);
    });
  const machines: (Machine | null)[] = [];
  for (let at = 0; at < vms.length; at += atOnceMax)
    machines.push(...(await Promise.all(vms.slice(at, at + atOnceMax).map(lookOrNote))));
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
  capabilities: ['compute:snapshots'],
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
  // The account of a reader may not see the worker's tasks, so it cannot make a checkpoint.
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
