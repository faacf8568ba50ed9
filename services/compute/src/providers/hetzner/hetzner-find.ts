import { z } from 'zod';
import type { Accepted, Change, Checkpoint } from '../compute-change.types';
import type { ComputeReader } from '../compute-provider';
import type { ProviderApi } from '../http/provider-api';
import { powerOf, referenceLabel } from './hetzner-changes';
import { readActions, type Seen } from './hetzner-reader';
import { imageSchema } from './hetzner-schemas';

const checkpointSchema: z.ZodType<Seen> = z.strictObject({ highestActionId: z.int() });

const commands = {
  create: 'create_server',
  start: 'start_server',
  delete: 'delete_server',
  take_snapshot: 'create_image',
  delete_snapshot: '',
  rollback: 'rebuild_server',
  rebuild: 'rebuild_server',
} as const;

function commandOf(change: Change): string {
  switch (change.kind) {
    case 'power_on':
    case 'power_off':
    case 'reboot':
      return powerOf(change).command;
    default:
      return commands[change.kind];
  }
}

export async function findChange(
  api: ProviderApi,
  reader: ComputeReader,
  change: Change,
  checkpoint: Checkpoint,
  signal?: AbortSignal,
): Promise<Accepted | null> {
  const { highestActionId } = checkpointSchema.parse(JSON.parse(checkpoint));
  const machineId =
    'machineId' in change ? change.machineId : ((await reader.findMachine(change.order.name, signal))?.id ?? null);
  if (machineId === null) return null;
  const done: Accepted = { actionId: null, machineId, snapshotId: null };
  if (change.kind === 'delete_snapshot')
    return (await reader.readSnapshot(machineId, change.snapshotId, signal)) === null ? done : null;
  if (change.kind === 'delete' && (await reader.readMachine(machineId, signal)) === null) return done;
  const snapshot = change.kind === 'take_snapshot' ? await findByReference(api, change.reference, signal) : null;
  if (change.kind === 'take_snapshot' && snapshot === null) return null;
  const actions = await readActions(api, machineId, [], signal);
  // The oldest one: later ones come from work that was accepted after it.
  const begun = actions.findLast(
    ({ id, command, resources }) =>
      id > highestActionId &&
      command === commandOf(change) &&
      (snapshot === null || resources.some((resource) => String(resource.id) === snapshot)),
  );
  if (begun === undefined && snapshot === null && change.kind !== 'create') return null;
  return { actionId: begun === undefined ? null : String(begun.id), machineId, snapshotId: snapshot };
}

/** Id of the snapshot that carries our label. */
async function findByReference(api: ProviderApi, reference: string, signal?: AbortSignal): Promise<string | null> {
  const query = [
    ['type', 'snapshot'],
    ['label_selector', `${referenceLabel}=${reference}`],
  ] as const;
  const answer = await api.read(['images'], query, z.object({ images: z.array(imageSchema) }), signal);
  const image = answer?.images[0];
  return image === undefined ? null : String(image.id);
}
