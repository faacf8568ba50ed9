import { z } from 'zod';
import type { PowerKind } from '../change.rules';
import type { Accepted, Change, Checkpoint } from '../compute.types';
import type { ComputeReader } from '../compute-provider';
import type { ApiOptions, ProviderApi } from '../http/provider-api';
import { findOrderedVm, findVm, listTasks, makingAction } from './proxmox-reader';
import { snapshotNameOf } from './proxmox-shapes';

/** A size that this cluster sells. */
export interface VmSize {
  cores: number;
  memoryMb: number;
  /** The size of the first disk in Proxmox' GB of 2^30 bytes. A larger disk is not shrunk. */
  diskGb: number;
}

export interface ProxmoxOptions extends ApiOptions {
  /**
   * The API token in the form `USER@REALM!TOKENID=UUID`. It needs VM.Audit, VM.Clone, VM.Config.*, VM.Allocate,
   * VM.PowerMgmt, VM.Snapshot, Datastore.AllocateSpace and Datastore.Audit.
   */
  token: string;
  /** The certificate of the cluster's own certificate authority, in PEM. */
  ca?: string | undefined;
  /** The sizes, by the name under which each is ordered. */
  sizes: Readonly<Record<string, VmSize>>;
  /** The template that is cloned for each image. */
  templates: Readonly<Record<string, number>>;
}

/** The disk that a size applies to. Templates that follow Proxmox' guide boot from it. */
export const firstDisk = 'scsi0';

/** The state that `prepare` saw. `node` is null if there was no VM, as before an order. */
const checkpointSchema = z.strictObject({
  node: z.string().nullable(),
  knownTasks: z.array(z.string()),
  wasRunning: z.boolean(),
});
type Seen = z.infer<typeof checkpointSchema>;

export const readCheckpoint = (checkpoint: Checkpoint): Seen => checkpointSchema.parse(JSON.parse(checkpoint));

const taskTypes = {
  create: 'qmclone',
  start: 'qmstart',
  delete: 'qmdestroy',
  take_snapshot: 'qmsnapshot',
  delete_snapshot: 'qmdelsnapshot',
  rollback: 'qmrollback',
  rebuild: '',
} as const;

/**
 * The provider's name for a change of the power, such as `start`. The path of the call ends with `status/start`, and
 * the type of the task is `qmstart`.
 */
export function powerOrderOf(change: Extract<Change, { kind: PowerKind }>): string {
  if (change.kind === 'power_on') return 'start';
  if (change.kind === 'power_off') return change.isForced ? 'stop' : 'shutdown';
  return change.isForced ? 'reset' : 'reboot';
}

function taskTypeOf(change: Change): string {
  switch (change.kind) {
    case 'power_on':
    case 'power_off':
    case 'reboot':
      return `qm${powerOrderOf(change)}`;
    default:
      return taskTypes[change.kind];
  }
}

/**
 * Records the tasks of the change's type that the VM's present node lists for the VM. A task that is not recorded was
 * begun later, whatever the cluster's clock says.
 */
export async function prepareChange(
  api: ProviderApi,
  reader: ComputeReader,
  change: Change,
  signal?: AbortSignal,
): Promise<Checkpoint> {
  const vm = 'machineId' in change ? await findVm(api, change.machineId, signal) : null;
  if (vm === null) return JSON.stringify({ node: null, knownTasks: [], wasRunning: false } satisfies Seen);
  const { node, machineId } = { node: vm.node, machineId: String(vm.vmid) };
  const [tasks, machine] = await Promise.all([
    listTasks(api, { node, machineId }, { source: 'all', type: taskTypeOf(change) }, signal),
    reader.readMachine(machineId, signal),
  ]);
  const knownTasks = tasks.map(({ upid }) => upid);
  // `vendorStatus` tells only whether the VM has a process. A paused VM, such as a VM whose disk is full, has a process
  // and counts as running. So a paused VM runs again after the rollback.
  return JSON.stringify({ node, knownTasks, wasRunning: machine?.vendorStatus === 'running' } satisfies Seen);
}

interface Finder {
  api: ProviderApi;
  reader: ComputeReader;
  options: Pick<ProxmoxOptions, 'token'>;
}

/** The user of the API token as a UPID names it: `USER@REALM!TOKENID`, without the secret. */
const userOf = ({ token }: Pick<ProxmoxOptions, 'token'>): string => token.slice(0, token.indexOf('='));

export async function findChange(
  { api, reader, options }: Finder,
  change: Change,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted | null> {
  if (change.kind === 'create') return await findOrdered(api, change.order.name, signal);
  const { machineId } = change;
  const snapshotId = change.kind === 'take_snapshot' ? snapshotNameOf(change.reference) : null;
  const { node, knownTasks } = readCheckpoint(checkpoint);
  const tasks =
    node === null ? [] : await listTasks(api, { node, machineId }, { source: 'all', type: taskTypeOf(change) }, signal);
  // Only tasks of this API token count. A rollback that staff have begun may go to another snapshot.
  const begun = tasks.findLast(({ upid }) => !knownTasks.includes(upid) && upid.endsWith(`:${userOf(options)}:`));
  if (begun !== undefined) return { actionId: begun.upid, machineId, snapshotId };
  const done = { actionId: null, machineId, snapshotId };
  // The name of the snapshot contains the workflow's id, so only this change can have made a snapshot of that name.
  if (snapshotId !== null && (await reader.readSnapshot(machineId, snapshotId, signal)) !== null) return done;
  if (change.kind === 'delete' && (await reader.readMachine(machineId, signal)) === null) return done;
  if (change.kind === 'delete_snapshot' && (await reader.readSnapshot(machineId, change.snapshotId, signal)) === null)
    return done;
  return null;
}

async function findOrdered(api: ProviderApi, name: string, signal?: AbortSignal): Promise<Accepted | null> {
  const vm = await findOrderedVm(api, name, signal);
  return vm === null ? null : { actionId: makingAction, machineId: String(vm.vmid), snapshotId: null };
}
