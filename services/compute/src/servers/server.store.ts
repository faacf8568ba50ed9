import type { ServerFilter, ServerStatus } from '@drydock/contracts/compute/compute-servers';
import { type Metadata, metadataSchema } from '@drydock/contracts/platform/values';
import { carrying, createdBetween, holding, lockRow, oneOf } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { Prisma, type Server as ServerRow } from '../generated/prisma/client';
import type { Machine } from '../providers/compute.types';
import { statusesBefore } from './server.rules';
import type { Owner, Server } from './server.types';

const toServer = ({ observedAt: _observedAt, ...row }: ServerRow): Server => ({
  ...row,
  metadata: metadataSchema.parse(row.metadata),
});

export type NewServer = Pick<
  Server,
  | 'id'
  | 'orgId'
  | 'mode'
  | 'name'
  | 'deployTarget'
  | 'planCode'
  | 'provider'
  | 'spec'
  | 'zone'
  | 'image'
  | 'status'
  | 'loginUser'
  | 'termMonths'
  | 'currency'
  | 'amountMinor'
  | 'subscriptionId'
  | 'metadata'
>;

export const insertServer = async (tx: Tx, server: NewServer): Promise<Server> =>
  toServer(await tx.server.create({ data: server }));

/** The servers of an owner. Deleted ones are left out. */
const theirs = ({ orgId, mode }: Owner) => ({ orgId, mode, status: { not: 'terminated' as const } });

/** The owner's server; null if there is none, or if it is another organisation's or the other mode's. */
export async function findServer(tx: Reader, owner: Owner, serverId: string): Promise<Server | null> {
  const row = await tx.server.findFirst({ where: { ...theirs(owner), id: serverId } });
  return row === null ? null : toServer(row);
}

/**
 * Finds the server as {@link findServer} does, and locks its row until the transaction ends. A decision about the
 * server stays true until it is written.
 */
export async function lockServer(tx: Tx, owner: Owner, serverId: string): Promise<Server | null> {
  const row = await lockRow<ServerRow>(tx, { name: 'servers', fields: Prisma.ServerScalarFieldEnum }, owner, serverId);
  return row === null || row.status === 'terminated' ? null : toServer(row);
}

/** Sets the name and the metadata. The caller holds the row's lock. */
export async function describeServer(
  tx: Tx,
  serverId: string,
  change: { name: string; metadata: Metadata },
): Promise<Server> {
  return toServer(await tx.server.update({ where: { id: serverId }, data: change }));
}

/** Lists servers, the newest first, from after the server `after`. */
export async function listServers(
  tx: Reader,
  owner: Owner,
  page: { after: string | null; take: number },
  { status, text, metadata, ...created }: ServerFilter,
): Promise<Server[]> {
  const behind = page.after === null ? {} : { id: { lt: page.after } };
  const narrowed = {
    AND: oneOf('status', status),
    ...holding(text, 'name'),
    ...carrying(metadata),
    ...createdBetween(created),
  };
  const rows = await tx.server.findMany({
    where: { ...theirs(owner), ...behind, ...narrowed },
    orderBy: { id: 'desc' },
    take: page.take,
  });
  return rows.map(toServer);
}

/** Throws if the server's status cannot change to `to`. */
async function changeServer(tx: Tx, serverId: string, to: ServerStatus, data: Partial<Server>): Promise<void> {
  const { count } = await tx.server.updateMany({
    where: { id: serverId, status: { in: statusesBefore(to) } },
    data: { ...data, status: to },
  });
  if (count !== 1) throw new Error(`server ${serverId} cannot become ${to}`);
}

/** The fields that come from the provider, unchanged. */
const observed = ({ vendorStatus, powerState, addresses, spec }: Machine) => ({
  vendorStatus,
  powerState,
  addresses: [...addresses],
  ...(spec === null ? {} : { spec }),
  vanishedAt: null,
});

export async function recordMachine(tx: Tx, serverId: string, machineId: string): Promise<void> {
  await tx.server.update({ where: { id: serverId }, data: { machineId } });
}

/** Marks the machine as running: from now on it may be used, and costs money. */
export const activateServer = (tx: Tx, serverId: string, machine: Machine, now: Date): Promise<void> =>
  changeServer(tx, serverId, 'active', { ...observed(machine), operable: true, activeSince: now });

/** `message` says why, to the customer. */
export const failServer = (tx: Tx, serverId: string, message: string): Promise<void> =>
  changeServer(tx, serverId, 'failed', {
    message,
    operable: false,
    powerState: 'unknown',
    addresses: [],
    vendorStatus: '',
  });

/** Locks the machine for work, until the provider's action has ended. `powerState`: the state to show meanwhile. */
export async function holdMachine(tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> {
  await tx.server.update({ where: { id: serverId }, data: { operable: false, powerState } });
}

/**
 * Unlocks the machine after the action, with its present state. `image`: the image it was built from, if that has
 * changed.
 */
export async function releaseMachine(tx: Tx, serverId: string, machine: Machine, image?: string): Promise<void> {
  const data = { ...observed(machine), operable: true, ...(image === undefined ? {} : { image }) };
  await tx.server.update({ where: { id: serverId }, data: { ...data, observedAt: await databaseTime(tx) } });
}

/** Unlocks the machine without reading it: the next reconciliation sees its state. */
export async function releaseUnchanged(tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> {
  await tx.server.updateMany({ where: { id: serverId, vanishedAt: null }, data: { operable: true, powerState } });
}

/** Marks the server as terminating from the moment when its deletion is accepted. */
export const beginTermination = (tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> =>
  changeServer(tx, serverId, 'terminating', { message: '', operable: false, powerState });

/** Ends a server whose provider has no machine of it any more: it costs nothing more, and is not shown again. */
export async function terminateServer(tx: Tx, serverId: string): Promise<void> {
  const { vanishedAt } = await tx.server.findUniqueOrThrow({ where: { id: serverId }, select: { vanishedAt: true } });
  const gone = { operable: false, powerState: 'unknown' as const, addresses: [], vendorStatus: '' };
  await changeServer(tx, serverId, 'terminated', { ...gone, vanishedAt: vanishedAt ?? (await databaseTime(tx)) });
}

/** Restores the former state, because nothing was deleted. Does nothing to a server whose machine is gone. */
export async function keepServer(
  tx: Tx,
  serverId: string,
  before: Pick<Server, 'status' | 'message' | 'operable' | 'powerState'>,
): Promise<void> {
  await tx.server.updateMany({ where: { id: serverId, status: 'terminating' }, data: before });
}

/** The time by Postgres' clock, the only one that all processes share. */
export async function databaseTime(tx: Reader): Promise<Date> {
  const [row] = await tx.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  if (row === undefined) throw new Error('Postgres did not tell the time');
  return row.now;
}
