import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { isPowered, type PowerKind } from '../change.rules';
import type { Accepted, Change, Checkpoint } from '../compute.types';
import {
  assertDeletionAllowed,
  assertPowerAllowed,
  assertRollbackAllowed,
  type Closing,
  type ComputeDriver,
  ComputeError,
  type ComputeReader,
} from '../compute-provider';
import { openProviderApi, type ProviderApi, type ReadPath } from '../http/provider-api';
import type { HttpCall } from '../http/provider-http';
import {
  findChange,
  firstDisk,
  type ProxmoxOptions,
  powerOrderOf,
  prepareChange,
  readCheckpoint,
  type VmSize,
} from './proxmox-find';
import { findVm, listTasks, proxmoxReader, refusalIn } from './proxmox-reader';
import { configSchema, dataOf, noteOf, type Resource, snapshotNameOf, upidSchema, vmidOf } from './proxmox-shapes';

/** A node lists a task as soon as the task's process exists, so 30 seconds are ample. */
const lostAnswerSecondsUsual = 30;

/**
 * The part of the cluster on which a call depends. For a node's path the part is the node, because other nodes may
 * answer while one node is unreachable. For a guest agent the part is null, because the agent's answer says nothing
 * about the cluster.
 */
const partOf = ([collection, node, , , agent]: ReadPath): string | null =>
  collection !== 'nodes' ? '' : agent === 'agent' ? null : String(node);

const openApi = ({ token, ...options }: ProxmoxOptions) =>
  openProviderApi({ ...options, headers: { authorization: `PVEAPIToken=${token}` }, refusalIn, partOf });

/** The reading part of one Proxmox VE cluster, for handlers. The reader sees only what the API token may see. */
export function proxmoxComputeReader(options: ProxmoxOptions): ComputeReader & Closing {
  const api = openApi(options);
  return { ...proxmoxReader(api), close: () => api.close() };
}

/** One Proxmox VE cluster with its changes, for workers. */
export function proxmoxCompute(options: ProxmoxOptions): ComputeDriver & Closing {
  const api = openApi(options);
  const reader = proxmoxReader(api);
  return {
    ...reader,
    lostAnswerSeconds: options.lostAnswerSeconds ?? lostAnswerSecondsUsual,
    prepare: (change, signal) => prepareChange(api, reader, change, signal),
    send: (change, checkpoint, signal) => sendChange({ api, reader, options }, change, checkpoint, signal),
    find: (change, checkpoint, signal) => findChange({ api, reader, options }, change, checkpoint, signal),
    close: () => api.close(),
  };
}

type Of<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>;

interface Sender {
  api: ProviderApi;
  reader: ComputeReader;
  options: ProxmoxOptions;
}

const upidAnswer = dataOf(upidSchema);
const form = (fields: Readonly<Record<string, string>>): Pick<HttpCall, 'body'> => ({ body: { kind: 'form', fields } });

async function sendChange(
  sender: Sender,
  change: Change,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  switch (change.kind) {
    case 'create':
      return await sendClone(sender, change, signal);
    case 'start':
      return await sendStart(sender, change, signal);
    case 'power_on':
    case 'power_off':
    case 'reboot':
      return await sendPower(sender, change, checkpoint, signal);
    case 'delete':
      return await sendDelete(sender, change, checkpoint, signal);
    case 'take_snapshot':
      return await sendSnapshot(sender, change, checkpoint, signal);
    case 'delete_snapshot':
      return await sendDeleteSnapshot(sender, change, checkpoint, signal);
    case 'rollback':
      return await sendRollback(sender, change, checkpoint, signal);
    case 'rebuild':
      throw new ComputeError('unsupported', 'Proxmox builds no VM anew in place');
  }
}

async function sendClone(
  { api, options }: Sender,
  { kind, order }: Of<'create'>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const template = Object.hasOwn(options.templates, order.image) ? options.templates[order.image] : undefined;
  if (template === undefined || !Object.hasOwn(options.sizes, order.spec))
    throw new ComputeError('order_refused', `no template for ${order.image}, or no size ${order.spec}`);
  const source = await findVm(api, String(template), signal);
  if (source === null) throw new ComputeError('order_refused', `template ${template} is not there`);
  const newid = String(vmidOf(order.name));
  const fields = { newid, name: order.name, full: '1', target: order.zone, description: noteOf(order) };
  const upid = await api.change(
    { method: 'POST', path: vmPath(source, 'clone'), ...form(fields) },
    kind,
    upidAnswer,
    signal,
  );
  return { actionId: upid, machineId: newid, snapshotId: null };
}

async function sendStart(
  { api, reader, options }: Sender,
  { kind, machineId, order }: Of<'start'>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const [vm, machine] = [await requireVm(api, machineId, signal), await reader.readMachine(machineId, signal)];
  const size = Object.hasOwn(options.sizes, order.spec) ? options.sizes[order.spec] : undefined;
  if (machine?.isLocked === true) throw new ComputeError('locked', `VM ${machineId} is still being made`);
  if (machine?.powerState === 'on') return { actionId: null, machineId, snapshotId: null };
  if (size === undefined) throw new ComputeError('order_refused', `the size ${order.spec} is not configured any more`);
  // The comparison is in bytes, because the provider's G is 2^30 bytes. `diskGb` is rounded, so 10^7 bytes are ignored.
  if ((machine?.diskGb ?? 0) * 1e9 < size.diskGb * 2 ** 30 - 1e7) await growDisk({ api, reader }, vm, size, signal);
  const settings = {
    ...{ cores: String(size.cores), memory: String(size.memoryMb) },
    ...(await signInOf(api, vm, order.sshKeys ?? [], signal)),
  };
  await api.change({ method: 'PUT', path: vmPath(vm, 'config'), ...form(settings) }, kind, z.unknown(), signal);
  const upid = await api.change({ method: 'POST', path: vmPath(vm, 'status', 'start') }, kind, upidAnswer, signal);
  return { actionId: upid, machineId, snapshotId: null };
}

/**
 * The settings with which cloud-init lets the keys sign in as root. The provider wants the keys URL-encoded within the
 * form. A VM without a drive of cloud-init would ignore them, so its order is refused.
 */
async function signInOf(
  api: ProviderApi,
  vm: Resource,
  sshKeys: readonly string[],
  signal?: AbortSignal,
): Promise<Record<string, string>> {
  if (sshKeys.length === 0) return {};
  const config = await api.read(vmPath(vm, 'config'), [], dataOf(configSchema), signal);
  if (config === null) throw new ComputeError('machine_not_found', `no VM ${vm.vmid}`);
  if (!Object.values(config).some((value) => typeof value === 'string' && cloudInitDrive.test(value)))
    throw new ComputeError('order_refused', `VM ${vm.vmid} has no drive of cloud-init, which its template lacks`);
  return { ciuser: 'root', sshkeys: encodeURIComponent(sshKeys.join('\n')) };
}

/** A disk of a VM's configuration, such as `local-lvm:vm-9000-cloudinit,media=cdrom`. */
const cloudInitDrive = /^[^,]+[:/-]cloudinit\b[^,]*,(?:.*,)?media=cdrom/;

/** The number of reads of a resize within one call, half a second apart. A longer resize needs another call. */
const resizeReadsMax = 10;

/**
 * Grows the first disk, and returns once it has grown. Proxmox VE 8 answers with a task, version 7 with null once the
 * disk has grown. A task of an earlier call is followed, and not begun again.
 *
 * @throws ComputeError `locked` while the disk still grows, `rejected` if it cannot grow. The VM is not started then
 */
async function growDisk(
  { api, reader }: Pick<Sender, 'api' | 'reader'>,
  vm: Resource,
  { diskGb }: VmSize,
  signal?: AbortSignal,
): Promise<void> {
  const machineId = String(vm.vmid);
  const [earlier] = await listTasks(api, { node: vm.node, machineId }, { source: 'all', type: 'resize' }, signal);
  let action = earlier === undefined ? null : await reader.readAction(machineId, earlier.upid, signal);
  if (action === null || action.state === 'succeeded' || action.failure?.reason === 'locked') {
    const grown = { disk: firstDisk, size: `${diskGb}G` };
    const call = { method: 'PUT', path: vmPath(vm, 'resize'), ...form(grown) } as const;
    const upid = await api.change(call, 'start', dataOf(upidSchema.nullable()), signal);
    if (upid === null) return;
    action = await reader.readAction(machineId, upid, signal);
  }
  for (let reads = 1; action.state === 'running' && reads < resizeReadsMax; reads += 1) {
    await wait(500, undefined, { signal });
    action = await reader.readAction(machineId, action.id, signal);
  }
  if (action.state === 'succeeded') return;
  const { reason, internal } = action.failure ?? { reason: 'locked', internal: 'it is still running' };
  throw new ComputeError(reason === 'locked' ? 'locked' : 'rejected', `resize of VM ${machineId}: ${internal}`);
}

async function sendPower(
  { api, reader }: Sender,
  change: Of<PowerKind>,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { kind, machineId } = change;
  const machine = await assertPowerAllowed(reader, change, signal);
  if (isPowered(machine, kind)) return { actionId: null, machineId, snapshotId: null };
  const vm = await requireFree(api, machineId, checkpoint, signal);
  const timeout = kind === 'power_on' || change.isForced ? {} : form({ timeout: String(change.guestSeconds) });
  const call = { method: 'POST', path: vmPath(vm, 'status', powerOrderOf(change)), ...timeout } as const;
  return { actionId: await api.change(call, kind, upidAnswer, signal), machineId, snapshotId: null };
}

/** Deletes a VM. The power of a running VM is cut first, because only a VM that is off can be destroyed. */
async function sendDelete(
  { api, reader }: Sender,
  change: Of<'delete'>,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { kind, machineId } = change;
  const machine = await assertDeletionAllowed(reader, change, signal);
  if (machine === null) return { actionId: null, machineId, snapshotId: null };
  const vm = await requireFree(api, machineId, checkpoint, signal);
  if (machine.vendorStatus === 'running') await stopVm(api, reader, vm, signal);
  const call = { method: 'DELETE', path: vmPath(vm), query: [['purge', '1']] } as const;
  return { actionId: await api.change(call, kind, upidAnswer, signal), machineId, snapshotId: null };
}

const readsMax = 20;

/**
 * Cuts the power of a VM that is to be deleted. If the answer to the stop is lost, no deletion was accepted, so the
 * error is `unavailable` and not `ambiguous`. The next attempt checks again whether the VM runs.
 */
async function stopVm(api: ProviderApi, reader: ComputeReader, vm: Resource, signal?: AbortSignal): Promise<void> {
  const call = { method: 'POST', path: vmPath(vm, 'status', 'stop') } as const;
  const upid = await api.change(call, 'power_off', upidAnswer, signal).catch((error: unknown) => {
    if (!(error instanceof ComputeError) || error.reason !== 'ambiguous') throw error;
    throw new ComputeError('unavailable', `no answer to the stop of VM ${vm.vmid}`, { cause: error });
  });
  for (let reads = 0; reads < readsMax; reads += 1) {
    if ((await reader.readAction(String(vm.vmid), upid, signal)).state !== 'running') return;
    await wait(500, undefined, { signal });
  }
  throw new ComputeError('locked', `VM ${vm.vmid} is still stopping`);
}

async function sendSnapshot(
  { api }: Sender,
  change: Of<'take_snapshot'>,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { kind, machineId, description, reference } = change;
  const vm = await requireFree(api, machineId, checkpoint, signal);
  const snapname = snapshotNameOf(reference);
  const call = {
    method: 'POST',
    path: vmPath(vm, 'snapshot'),
    ...form({ snapname, description, vmstate: '0' }),
  } as const;
  return { actionId: await api.change(call, kind, upidAnswer, signal), machineId, snapshotId: snapname };
}

async function sendDeleteSnapshot(
  { api, reader }: Sender,
  { kind, machineId, snapshotId }: Of<'delete_snapshot'>,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  if ((await reader.readSnapshot(machineId, snapshotId, signal)) === null)
    return { actionId: null, machineId, snapshotId: null };
  const vm = await requireFree(api, machineId, checkpoint, signal);
  const upid = await api.change(
    { method: 'DELETE', path: vmPath(vm, 'snapshot', snapshotId) },
    kind,
    upidAnswer,
    signal,
  );
  return { actionId: upid, machineId, snapshotId: null };
}

async function sendRollback(
  { api, reader }: Sender,
  change: Of<'rollback'>,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { kind, machineId, snapshotId } = change;
  await assertRollbackAllowed(reader, change, signal);
  const vm = await requireFree(api, machineId, checkpoint, signal);
  const start = readCheckpoint(checkpoint).wasRunning ? '1' : '0';
  const call = { method: 'POST', path: vmPath(vm, 'snapshot', snapshotId, 'rollback'), ...form({ start }) } as const;
  return { actionId: await api.change(call, kind, upidAnswer, signal), machineId, snapshotId: null };
}

const vmPath = ({ node, vmid }: Resource, ...rest: string[]) => ['nodes', node, 'qemu', vmid, ...rest];

async function requireVm(api: ProviderApi, machineId: string, signal?: AbortSignal): Promise<Resource> {
  const vm = await findVm(api, machineId, signal);
  if (vm === null) throw new ComputeError('machine_not_found', `no VM ${machineId}`);
  return vm;
}

/**
 * Requires that the VM has no lock and is still on the node where `prepare` saw it, because `find` searches only there.
 * For a locked VM the provider would accept the call and let its task fail, and the workflow would fail with the task.
 */
async function requireFree(
  api: ProviderApi,
  machineId: string,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Resource> {
  const vm = await requireVm(api, machineId, signal);
  const { node } = readCheckpoint(checkpoint);
  if (vm.node !== node)
    throw new ComputeError('rejected', `VM ${machineId} has moved from ${node ?? 'nowhere'} to ${vm.node}`);
  if (vm.lock !== undefined) throw new ComputeError('locked', `VM is locked (${vm.lock})`);
  return vm;
}
