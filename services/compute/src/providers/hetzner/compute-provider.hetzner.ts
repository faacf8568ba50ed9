import { z } from 'zod';
import { isPowered, type PowerKind } from '../change.rules';
import type { Accepted, Change, Checkpoint, ComputeReason } from '../compute.types';
import {
  assertDeletionAllowed,
  assertPowerAllowed,
  assertRollbackAllowed,
  type Closing,
  type ComputeDriver,
  ComputeError,
  type ComputeReader,
} from '../compute-provider';
import { type ApiOptions, openProviderApi, type ProviderApi } from '../http/provider-api';
import type { HttpAnswer } from '../http/provider-http';
import { retryAfterSeconds } from '../http/rate-budget';
import {
  actionSchema,
  concerns,
  errorSchema,
  hetznerReader,
  imageSchema,
  isId,
  machineLabel,
  prepareOn,
  readActions,
  type Seen,
  serverSchema,
} from './hetzner-reader';

interface HetznerOptions extends ApiOptions {
  /** The API token of one project. */
  token: string;
}

const openHetznerApi = ({ token, ...options }: HetznerOptions): ProviderApi =>
  openProviderApi({ ...options, headers: { authorization: `Bearer ${token}` }, refusalIn });

/** The provider lists a change within moments of its acceptance, so 30 seconds are ample. */
const lostAnswerSecondsUsual = 30;

/** One project of Hetzner Cloud, for handlers. */
export function hetznerComputeReader(options: HetznerOptions): ComputeReader & Closing {
  const api = openHetznerApi(options);
  return { ...hetznerReader(api), close: () => api.close() };
}

/** One project of Hetzner Cloud, for workers. */
export function hetznerCompute(options: HetznerOptions): ComputeDriver & Closing {
  const api = openHetznerApi(options);
  const reader = hetznerReader(api);
  return {
    ...reader,
    lostAnswerSeconds: options.lostAnswerSeconds ?? lostAnswerSecondsUsual,
    prepare: (change, signal) => prepareOn(api, 'machineId' in change ? change.machineId : null, signal),
    send: (change, _checkpoint, signal) => sendChange(api, reader, change, signal),
    find: (change, checkpoint, signal) => findChange(api, reader, change, checkpoint, signal),
    close: () => api.close(),
  };
}

/**
 * The reasons for the codes of definite refusals: the provider has read the request and changed nothing. An unlisted
 * code of a 4xx counts as `rejected`. A 5xx leaves open whether the provider changed something.
 */
const reasonOfCode: Readonly<Record<string, ComputeReason>> = {
  unauthorized: 'credentials_refused',
  forbidden: 'credentials_refused',
  token_readonly: 'credentials_refused',
  not_found: 'machine_not_found',
  conflict: 'conflict',
  locked: 'locked',
  resource_locked: 'locked',
  protected: 'protected',
  rate_limit_exceeded: 'rate_limited',
  invalid_input: 'rejected',
  json_error: 'rejected',
  method_not_allowed: 'rejected',
  resource_limit_exceeded: 'rejected',
};

/** Reasons that replace `reasonOfCode` for one kind of change. */
const reasonOfChange: Readonly<Partial<Record<Change['kind'], Readonly<Record<string, ComputeReason>>>>> = {
  // `uniqueness_error` means that the name is taken. The name is Drydock's id of the server, so an earlier call whose
  // answer was lost has made the machine.
  create: {
    uniqueness_error: 'ambiguous',
    invalid_input: 'order_refused',
    not_found: 'order_refused',
    resource_unavailable: 'order_refused',
    placement_error: 'order_refused',
    unsupported_error: 'order_refused',
  },
  rollback: { invalid_input: 'incompatible' },
  rebuild: { invalid_input: 'incompatible' },
};

/**
 * The error for a definite refusal. Null for any other answer, after which a read counts as `unavailable` and a change
 * as `ambiguous`.
 */
function refusalIn({ status, headers, json }: HttpAnswer, kind?: Change['kind']): ComputeError | null {
  const parsed = errorSchema.safeParse(json);
  if (status < 400 || status >= 500 || (status !== 429 && !parsed.success)) return null;
  const { code, message } = parsed.success
    ? parsed.data.error
    : { code: 'rate_limit_exceeded', message: 'too many requests' };
  const reason = (kind === undefined ? undefined : reasonOfChange[kind]?.[code]) ?? reasonOfCode[code] ?? 'rejected';
  const text = `${status} ${code}: ${message.slice(0, 500)}`;
  return reason === 'rate_limited'
    ? new ComputeError(reason, text, { retryAfterSeconds: retryAfterSeconds(headers) })
    : new ComputeError(reason, text);
}

/** The label of a snapshot by which `find` recognises it. */
const referenceLabel = 'drydock-reference';

const actionAnswer = z.object({ action: actionSchema });
const imageAnswer = actionAnswer.extend({ image: imageSchema });
const serverAnswer = actionAnswer.extend({ server: serverSchema });

type Of<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>;

async function sendChange(
  api: ProviderApi,
  reader: ComputeReader,
  change: Change,
  signal?: AbortSignal,
): Promise<Accepted> {
  if ('machineId' in change && !isId(change.machineId))
    throw new ComputeError('machine_not_found', 'a server has a number');
  switch (change.kind) {
    case 'create':
      return await sendCreate(api, change, signal);
    case 'start':
      return await sendStart(api, reader, change, signal);
    case 'power_on':
    case 'power_off':
    case 'reboot':
      return await sendPower(api, reader, change, signal);
    case 'delete':
      return await sendDelete(api, reader, change, signal);
    case 'take_snapshot':
      return await sendSnapshot(api, change, signal);
    case 'delete_snapshot':
      return await sendDeleteSnapshot(api, reader, change, signal);
    case 'rollback':
      await assertRollbackAllowed(reader, change, signal);
      return await sendRebuild(api, reader, change, change.snapshotId, signal);
    case 'rebuild':
      return await sendRebuild(api, reader, change, change.image, signal);
  }
}

/**
 * The keys as a configuration for cloud-init, in which JSON counts as YAML. A rebuild applies it again. The provider's
 * own `ssh_keys` would need an object in the project for each key.
 */
const userDataOf = (sshKeys: readonly string[]): string =>
  `#cloud-config\n${JSON.stringify({ disable_root: false, ssh_authorized_keys: sshKeys })}\n`;

async function sendCreate(api: ProviderApi, { kind, order }: Of<'create'>, signal?: AbortSignal): Promise<Accepted> {
  const { name, spec, image, zone, labels, sshKeys = [] } = order;
  const value = {
    ...{ name, server_type: spec, image, location: zone, labels },
    ...(sshKeys.length === 0 ? {} : { user_data: userDataOf(sshKeys) }),
  };
  const { server, action } = await api.change(
    { method: 'POST', path: ['servers'], body: { kind: 'json', value } },
    kind,
    serverAnswer,
    signal,
  );
  return accepted(String(server.id), action);
}

async function sendStart(
  api: ProviderApi,
  reader: ComputeReader,
  { kind, machineId }: Of<'start'>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const machine = await reader.readMachine(machineId, signal);
  if (machine === null) throw new ComputeError('machine_not_found', `no server ${machineId}`);
  // A running machine needs no call. A machine that was just created already runs.
  if (machine.powerState === 'on' || machine.powerState === 'starting')
    return { actionId: null, machineId, snapshotId: null };
  const { action } = await api.change(
    { method: 'POST', path: ['servers', machineId, 'actions', 'poweron'] },
    kind,
    actionAnswer,
    signal,
  );
  return accepted(machineId, action);
}

/** The provider's names for a change of the power: the path of the request, and the command of its action. */
function powerOf(change: Of<PowerKind>): { path: string; command: string } {
  if (change.kind === 'power_on') return { path: 'poweron', command: 'start_server' };
  if (change.kind === 'power_off')
    return change.isForced
      ? { path: 'poweroff', command: 'stop_server' }
      : { path: 'shutdown', command: 'shutdown_server' };
  return change.isForced ? { path: 'reset', command: 'reset_server' } : { path: 'reboot', command: 'reboot_server' };
}

async function sendPower(
  api: ProviderApi,
  reader: ComputeReader,
  change: Of<PowerKind>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { kind, machineId } = change;
  const machine = await assertPowerAllowed(reader, change, signal);
  if (isPowered(machine, kind)) return { actionId: null, machineId, snapshotId: null };
  const call = { method: 'POST', path: ['servers', machineId, 'actions', powerOf(change).path] } as const;
  const { action } = await api.change(call, kind, actionAnswer, signal);
  return accepted(machineId, action);
}

async function sendDelete(
  api: ProviderApi,
  reader: ComputeReader,
  change: Of<'delete'>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { kind, machineId } = change;
  const done: Accepted = { actionId: null, machineId, snapshotId: null };
  if ((await assertDeletionAllowed(reader, change, signal)) === null) return done;
  try {
    const { action } = await api.change({ method: 'DELETE', path: ['servers', machineId] }, kind, actionAnswer, signal);
    return accepted(machineId, action);
  } catch (error) {
    if (error instanceof ComputeError && error.reason === 'machine_not_found') return done;
    throw error;
  }
}

async function sendSnapshot(api: ProviderApi, change: Of<'take_snapshot'>, signal?: AbortSignal): Promise<Accepted> {
  const { kind, machineId, description, reference } = change;
  const labels = { [referenceLabel]: reference, [machineLabel]: machineId };
  const value = { type: 'snapshot', description, labels };
  const call = {
    method: 'POST',
    path: ['servers', machineId, 'actions', 'create_image'],
    body: { kind: 'json', value },
  } as const;
  const { action, image } = await api.change(call, kind, imageAnswer, signal);
  return { ...accepted(machineId, action), snapshotId: String(image.id) };
}

async function sendDeleteSnapshot(
  api: ProviderApi,
  reader: ComputeReader,
  { kind, machineId, snapshotId }: Of<'delete_snapshot'>,
  signal?: AbortSignal,
): Promise<Accepted> {
  const done: Accepted = { actionId: null, machineId, snapshotId: null };
  // The snapshot is read first, because the provider would also delete another machine's snapshot.
  if ((await reader.readSnapshot(machineId, snapshotId, signal)) === null) return done;
  try {
    await api.change({ method: 'DELETE', path: ['images', snapshotId] }, kind, z.unknown(), signal);
  } catch (error) {
    if (!(error instanceof ComputeError) || error.reason !== 'machine_not_found') throw error;
  }
  return done;
}

async function sendRebuild(
  api: ProviderApi,
  reader: ComputeReader,
  { kind, machineId }: Of<'rollback'> | Of<'rebuild'>,
  image: string,
  signal?: AbortSignal,
): Promise<Accepted> {
  const call = {
    method: 'POST',
    path: ['servers', machineId, 'actions', 'rebuild'],
    body: { kind: 'json', value: { image } },
  } as const;
  try {
    const { action } = await api.change(call, kind, actionAnswer, signal);
    return accepted(machineId, action);
  } catch (error) {
    // A 404 means that the server or the image is missing. A read of the server tells which of them.
    const isMissing = error instanceof ComputeError && error.reason === 'machine_not_found';
    if (!isMissing || (await reader.readMachine(machineId, signal)) === null) throw error;
    throw new ComputeError(kind === 'rollback' ? 'snapshot_not_found' : 'order_refused', error.message, {
      cause: error,
    });
  }
}

function accepted(machineId: string, action: z.infer<typeof actionSchema>): Accepted {
  // If the answer names an action on another machine, it is unknown what the provider has accepted.
  if (!concerns(action, machineId))
    throw new ComputeError('ambiguous', `action ${action.id} is not of server ${machineId}`);
  return { actionId: String(action.id), machineId, snapshotId: null };
}

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

async function findChange(
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
  // The oldest matching action belongs to this change, because later actions come from work that was accepted after
  // this change.
  const begun = actions.findLast(
    ({ id, command, resources }) =>
      id > highestActionId &&
      command === commandOf(change) &&
      (snapshot === null || resources.some((resource) => String(resource.id) === snapshot)),
  );
  if (begun === undefined && snapshot === null && change.kind !== 'create') return null;
  return { actionId: begun === undefined ? null : String(begun.id), machineId, snapshotId: snapshot };
}

/** The id of the snapshot whose label has this reference. */
async function findByReference(api: ProviderApi, reference: string, signal?: AbortSignal): Promise<string | null> {
  const query = [
    ['type', 'snapshot'],
    ['label_selector', `${referenceLabel}=${reference}`],
  ] as const;
  const answer = await api.read(['images'], query, z.object({ images: z.array(imageSchema) }), signal);
  const image = answer?.images[0];
  return image === undefined ? null : String(image.id);
}
