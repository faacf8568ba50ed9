import type { ServerFilter, ServerPowerState, ServerStatus } from '@drydock/contracts/compute/compute-servers';
import { type Metadata, type Mode, metadataSchema } from '@drydock/contracts/platform/values';
import { carrying, createdBetween, holding, lockRow, oneOf, type Sql } from '@drydock/service/database';
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
  | 'hasSshKeys'
  | 'termMonths'
  | 'currency'
  | 'amountMinor'
  | 'subscriptionId'
  | 'metadata'
>;

export const insertServer = async (tx: Tx, server: NewServer): Promise<Server> =>
  toServer(await tx.server.create({ data: server }));

/** The filter for the servers of an owner, without deleted servers. */
const theirs = ({ orgId, mode }: Owner) => ({ orgId, mode, status: { not: 'terminated' as const } });

/** The owner's server; null if the owner has no undeleted server with this id in the owner's mode. */
export async function findServer(tx: Reader, owner: Owner, serverId: string): Promise<Server | null> {
  const row = await tx.server.findFirst({ where: { ...theirs(owner), id: serverId } });
  return row === null ? null : toServer(row);
}

/**
 * Finds the server as {@link findServer} does, and locks its row until the transaction ends. So the state behind a
 * decision cannot change before the decision is written.
 */
export async function lockServer(tx: Tx, owner: Owner, serverId: string): Promise<Server | null> {
  const row = await lockRow<ServerRow>(tx, { name: 'servers', fields: Prisma.ServerScalarFieldEnum }, owner, serverId);
  return row === null || row.status === 'terminated' ? null : toServer(row);
}

/** Sets the name and the metadata. The caller has locked the row. */
export async function describeServer(
  tx: Tx,
  serverId: string,
  change: { name: string; metadata: Metadata },
): Promise<Server> {
  return toServer(await tx.server.update({ where: { id: serverId }, data: change }));
}

/** Lists servers, newest first, beginning after the server `after`. */
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

/** Changes the status of the server to `to`. Throws if the present status does not allow the change. */
async function changeServer(tx: Tx, serverId: string, to: ServerStatus, data: Partial<Server>): Promise<void> {
  const { count } = await tx.server.updateMany({
    where: { id: serverId, status: { in: statusesBefore(to) } },
    data: { ...data, status: to },
  });
  if (count !== 1) throw new Error(`server ${serverId} cannot become ${to}`);
}

/** The fields that a machine determines. `vanishedAt` is null, because the provider shows the machine. */
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

/** Marks the server as active. From now on it may be used, and a live server costs money. */
export const activateServer = (tx: Tx, serverId: string, machine: Machine, now: Date): Promise<void> =>
  changeServer(tx, serverId, 'active', { ...observed(machine), operable: true, activeSince: now });

/** Marks the server as failed. `message` tells the customer the reason. */
export const failServer = (tx: Tx, serverId: string, message: string): Promise<void> =>
  changeServer(tx, serverId, 'failed', {
    message,
    operable: false,
    powerState: 'unknown',
    addresses: [],
    vendorStatus: '',
  });

/** Makes the server inoperable while a workflow works on its machine. `powerState` is shown meanwhile. */
export async function holdMachine(tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> {
  await tx.server.update({ where: { id: serverId }, data: { operable: false, powerState } });
}

/**
 * Makes the server operable again and records the machine's present state. `image` is given if the machine was built
 * from another image.
 */
export async function releaseMachine(tx: Tx, serverId: string, machine: Machine, image?: string): Promise<void> {
  const data = { ...observed(machine), operable: true, ...(image === undefined ? {} : { image }) };
  await tx.server.update({ where: { id: serverId }, data: { ...data, observedAt: await databaseTime(tx) } });
}

/**
 * Makes the server operable again without reading its machine. The next reconciliation records the state. A listing
 * that began before the release may show a passing state, so it is not recorded. A server whose machine has vanished
 * stays inoperable.
 */
export async function releaseUnchanged(tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> {
  const data = { operable: true, powerState, observedAt: await databaseTime(tx) };
  await tx.server.updateMany({ where: { id: serverId, vanishedAt: null }, data });
}

/** Marks the server as terminating, when its deletion is accepted. */
export const beginTermination = (tx: Tx, serverId: string, powerState: Server['powerState']): Promise<void> =>
  changeServer(tx, serverId, 'terminating', { message: '', operable: false, powerState });

/** Ends a server whose machine is gone at the provider. A terminated server costs nothing more and is not shown. */
export async function terminateServer(tx: Tx, serverId: string): Promise<void> {
  const { vanishedAt } = await tx.server.findUniqueOrThrow({ where: { id: serverId }, select: { vanishedAt: true } });
  const gone = { operable: false, powerState: 'unknown' as const, addresses: [], vendorStatus: '' };
  await changeServer(tx, serverId, 'terminated', { ...gone, vanishedAt: vanishedAt ?? (await databaseTime(tx)) });
}

/** Restores the state before a deletion that has deleted nothing. Changes only a server that is `terminating`. */
export async function keepServer(
  tx: Tx,
  serverId: string,
  before: Pick<Server, 'status' | 'message' | 'operable' | 'powerState'>,
): Promise<void> {
  await tx.server.updateMany({ where: { id: serverId, status: 'terminating' }, data: before });
}

/** The present time by Postgres' clock, which all processes share. */
export async function databaseTime(tx: Reader): Promise<Date> {
  const [row] = await tx.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  if (row === undefined) throw new Error('Postgres did not tell the time');
  return row.now;
}

/**
 * Removes all schedules of reconciliations except those with these names. The reconciliation of a target that is not
 * configured any more would fail for ever.
 */
export const removeOtherSchedules = (sql: Sql, names: readonly string[]): Promise<unknown> =>
  sql.query(
    `DELETE FROM workflow_schedule WHERE kind = 'reconcile_servers'
      AND NOT (name = ANY(ARRAY(SELECT jsonb_array_elements_text($1::jsonb))))`,
    [JSON.stringify(names)],
  );

export interface SeenMachine {
  machineId: string;
  name: string;
  vendorStatus: string;
  powerState: ServerPowerState;
  addresses: string[];
  spec: string | null;
}

interface Range {
  mode: Mode;
  deployTarget: string;
}

/**
 * The ids of the machines that the target's provider should have. Machines that were observed after `listedAt` are left
 * out.
 */
export async function listExpected(tx: Reader, { mode, deployTarget }: Range, listedAt: Date): Promise<string[]> {
  const rows = await tx.server.findMany({
    where: { mode, deployTarget, status: 'active', vanishedAt: null, observedAt: { lt: listedAt } },
    select: { machineId: true },
    orderBy: { id: 'asc' },
  });
  return rows.flatMap(({ machineId }) => (machineId === null ? [] : [machineId]));
}

/**
 * Locks the servers of the target until the transaction ends. The lock is a separate statement: an update that itself
 * waits for a row sees the row's new version, but not the workflow that was accepted with that version.
 */
const lockRange = (tx: Tx, { mode, deployTarget }: Range): Promise<unknown> =>
  tx.$queryRaw`
    SELECT id FROM servers WHERE mode = ${mode}::mode AND deploy_target = ${deployTarget} AND status = 'active'
    ORDER BY id FOR UPDATE`;

/**
 * Records power, addresses, size and status from the provider, unless a newer state is recorded or a workflow works on
 * the server. A server whose machine is seen becomes operable, unless one of its workflows waits for staff. A machine
 * that had vanished counts as seen only if its name is the id of the server, because providers reuse numbers.
 */
export async function applySeen(
  tx: Tx,
  { mode, deployTarget }: Range,
  seen: readonly SeenMachine[],
  listedAt: string,
): Promise<void> {
  await lockRange(tx, { mode, deployTarget });
  await tx.$executeRaw`
    UPDATE servers SET vendor_status = seen."vendorStatus", power_state = seen."powerState"::power_state,
      spec = coalesce(seen.spec, servers.spec),
      addresses = ARRAY(SELECT jsonb_array_elements_text(seen.addresses)), vanished_at = NULL,
        observed_at = clock_timestamp(),
      operable = CASE WHEN EXISTS (SELECT FROM workflow WHERE resource_key = 'server:' || servers.id
        AND status = 'needs_attention') THEN servers.operable ELSE true END
    FROM jsonb_to_recordset(${JSON.stringify(seen)}::jsonb)
      AS seen("machineId" text, name text, "vendorStatus" text, "powerState" text, addresses jsonb, spec text)
    WHERE servers.mode = ${mode}::mode AND servers.deploy_target = ${deployTarget}
    AND servers.machine_id = seen."machineId"
      AND servers.status = 'active' AND servers.observed_at < ${listedAt}::timestamptz
      AND (servers.vanished_at IS NULL OR seen.name = servers.id::text)
      AND NOT EXISTS (SELECT FROM workflow WHERE resource_key = 'server:' || servers.id
        AND status IN ('queued', 'running'))`;
}

/** The vendor status of a server whose machine has vanished. */
const vanishedWord = 'not_found';

/** Marks servers whose machines have vanished. Resolves with the ids of the servers that were not marked before. */
export async function applyVanished(
  tx: Tx,
  { mode, deployTarget }: Range,
  machineIds: readonly string[],
  listedAt: string,
): Promise<string[]> {
  await lockRange(tx, { mode, deployTarget });
  const rows = await tx.$queryRaw<{ id: string }[]>`
    UPDATE servers SET vendor_status = ${vanishedWord}, power_state = 'unknown', addresses = '{}', operable = false,
      vanished_at = clock_timestamp(),
      observed_at = clock_timestamp()
    WHERE mode = ${mode}::mode AND deploy_target = ${deployTarget} AND machine_id = ANY(${[...machineIds]}::text[])
      AND status = 'active' AND vanished_at IS NULL AND observed_at < ${listedAt}::timestamptz
      AND NOT EXISTS (SELECT FROM workflow WHERE resource_key = 'server:' || servers.id
        AND status IN ('queued', 'running'))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
