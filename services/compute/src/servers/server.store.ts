import type { ServerFilter, ServerStatus } from '@drydock/contracts/compute/compute-servers';
import { type Metadata, metadataSchema } from '@drydock/contracts/platform/values';
import { carrying, createdBetween, holding, oneOf } from '@drydock/service/database/list-filter';
import { lockRow } from '@drydock/service/database/prisma-database';
import type { Reader, Tx } from '../database.store';
import { Prisma, type Server as ServerRow } from '../generated/prisma/client';
import type { Machine } from '../providers/compute-machine.types';
import type { Owner, Server } from './server.types';
import { statusesBefore } from './server-transitions';

const toServer = ({ observedAt: _observedAt, ...row }: ServerRow): Server => ({ ...row, metadata: metadataSchema.parse(row.metadata) });

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

export const insertServer = async (tx: Tx, server: NewServer): Promise<Server> => toServer(await tx.server.create({ data: server }));

/** The servers of an owner. Deleted ones do not count as there. */
const theirs = ({ orgId, mode }: Owner) => ({ orgId, mode, status: { not: 'terminated' as const } });

/** The owner's server, or null: another organisation's and the other mode's are not there. */
export async function findServer(tx: Reader, owner: Owner, serverId: string): Promise<Server | null> {
  const row = await tx.server.findFirst({ where: { ...theirs(owner), id: serverId } });
  return row === null ? null : toServer(row);
}

/** The same, held until the transaction ends: what is decided about the server stays true until it is written. */
export async function lockServer(tx: Tx, owner: Owner, serverId: string): Promise<Server | null> {
  const row = await lockRow<ServerRow>(tx, { name: 'servers', fields: Prisma.ServerScalarFieldEnum }, owner, serverId);
  return row === null || row.status === 'terminated' ? null : toServer(row);
}

/** Sets the name and the metadata. The caller holds the row's lock. */
export async function describeServer(tx: Tx, serverId: string, change: { name: string; metadata: Metadata }): Promise<Server> {
  return toServer(await tx.server.update({ where: { id: serverId }, data: change }));
}

/** Newest first, from behind the server `after`. */
export async function listServers(
  tx: Reader,
  owner: Owner,
  page: { after: string | null; take: number },
  { status, text, metadata, ...created }: ServerFilter,
): Promise<Server[]> {
  const behind = page.after === null ? {} : { id: { lt: page.after } };
  const narrowed = { AND: oneOf('status', status), ...holding(text, 'name'), ...carrying(metadata), ...createdBetween(created) };
  const rows = await tx.server.findMany({
    where: { ...theirs(owner), ...behind, ...narrowed },
    orderBy: { id: 'desc' },
    take: page.take,
  });
  return rows.map(toServer);
}

/** Throws when no edge leads there from the status that the server has. */
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

/** The machine runs: from now on it may be used, and is paid for. */
export const activateServer = (tx: Tx, serverId: string, machine: Machine, now: Date): Promise<void> =>
  changeServer(tx, serverId, 'active', { ...observed(machine), operable: true, activeSince: now });

/** `message` says why, to the customer. */
export const failServer = (tx: Tx, serverId: string, message: string): Promise<void> =>
  changeServer(tx, serverId, 'failed', { message, operable: false, powerState: 'unknown', addresses: [], vendorStatus: '' });

/** From the acceptance of work on the machine until the provider's action has ended. `powerState`: what it is shown to do meanwhile. */
export async function holdMachine(tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> {
  await tx.server.update({ where: { id: serverId }, data: { operable: false, powerState } });
}

/** The action has ended and the provider was asked what became of the machine. `image`: what it was built from, where that has changed. */
export async function releaseMachine(tx: Tx, serverId: string, machine: Machine, image?: string): Promise<void> {
  const data = { ...observed(machine), operable: true, ...(image === undefined ? {} : { image }) };
  await tx.server.update({ where: { id: serverId }, data: { ...data, observedAt: await databaseTime(tx) } });
}

/** Nothing more will be done to it; the next reconciliation sees what it is doing. */
export async function releaseUnchanged(tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> {
  await tx.server.updateMany({ where: { id: serverId, vanishedAt: null }, data: { operable: true, powerState } });
}

/** From the acceptance of a deletion on. */
export const beginTermination = (tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> =>
  changeServer(tx, serverId, 'terminating', { message: '', operable: false, powerState });

/** Its provider knows no machine of it any more: it is not paid for any further, and nobody sees it again. */
export async function terminateServer(tx: Tx, serverId: string): Promise<void> {
  const { vanishedAt } = await tx.server.findUniqueOrThrow({ where: { id: serverId }, select: { vanishedAt: true } });
  const gone = { operable: false, powerState: 'unknown' as const, addresses: [], vendorStatus: '' };
  await changeServer(tx, serverId, 'terminated', { ...gone, vanishedAt: vanishedAt ?? (await databaseTime(tx)) });
}

/** Nothing was deleted: it is what it was. Does nothing to a server whose machine is gone. */
export async function keepServer(
  tx: Tx,
  serverId: string,
  before: Pick<Server, 'status' | 'message' | 'operable' | 'powerState'>,
): Promise<void> {
  await tx.server.updateMany({ where: { id: serverId, status: 'terminating' }, data: before });
}

/** By Postgres' clock, the only one that all processes share. */
export async function databaseTime(tx: Reader): Promise<Date> {
  const [row] = await tx.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  if (row === undefined) throw new Error('Postgres did not tell the time');
  return row.now;
}
