import { z } from 'zod';
import type { Accepted, Change, Checkpoint } from '../compute-change.types';
import type { ComputeReader } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import { snapshotNameOf, vmidOf } from './order-note';
import { makingAction } from './proxmox-reader';
import { listTasks } from './proxmox-tasks';

const checkpointSchema = z.strictObject({ knownTasks: z.array(z.string()), wasRunning: z.boolean() });

export const readCheckpoint = (checkpoint: Checkpoint): z.infer<typeof checkpointSchema> => checkpointSchema.parse(JSON.parse(checkpoint));

const taskTypes: Readonly<Record<Change['kind'], string>> = {
  create: 'qmclone',
  start: 'qmstart',
  delete: 'qmdestroy',
  take_snapshot: 'qmsnapshot',
  delete_snapshot: 'qmdelsnapshot',
  rollback: 'qmrollback',
  rebuild: '',
};

/** The VM's tasks of this type so far: what a change begins is another one, whatever the cluster's clock says. */
export async function prepareChange(api: ProviderApi, reader: ComputeReader, change: Change, signal?: AbortSignal): Promise<Checkpoint> {
  if (!('machineId' in change)) return JSON.stringify({ knownTasks: [], wasRunning: false });
  const [tasks, machine] = await Promise.all([
    listTasks(api, change.machineId, { source: 'all', type: taskTypes[change.kind] }, signal),
    reader.readMachine(change.machineId, signal),
  ]);
  return JSON.stringify({ knownTasks: tasks.map(({ upid }) => upid), wasRunning: machine?.powerState === 'on' });
}

export async function findChange(
  api: ProviderApi,
  reader: ComputeReader,
  change: Change,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted | null> {
  if (change.kind === 'create') return await findOrdered(reader, change.order.name, signal);
  const { machineId } = change;
  const snapshotId = change.kind === 'take_snapshot' ? snapshotNameOf(change.reference) : null;
  const { knownTasks } = readCheckpoint(checkpoint);
  const tasks = await listTasks(api, machineId, { source: 'all', type: taskTypes[change.kind] }, signal);
  // One operation holds a machine at a time: what is new is ours.
  const begun = tasks.find(({ upid }) => !knownTasks.includes(upid));
  if (begun !== undefined) return { actionId: begun.upid, machineId, snapshotId };
  const done = { actionId: null, machineId, snapshotId };
  if (change.kind === 'delete' && (await reader.readMachine(machineId, signal)) === null) return done;
  if (change.kind === 'delete_snapshot' && (await reader.readSnapshot(machineId, change.snapshotId, signal)) === null) return done;
  return null;
}

/** Its number follows from its name; a VM of that number under another name is somebody else's. */
async function findOrdered(reader: ComputeReader, name: string, signal?: AbortSignal): Promise<Accepted | null> {
  const machineId = String(vmidOf(name));
  const machine = await reader.readMachine(machineId, signal);
  return machine?.name === name ? { actionId: makingAction, machineId, snapshotId: null } : null;
}
