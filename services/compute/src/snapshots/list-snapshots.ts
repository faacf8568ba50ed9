import {
  type getServerSnapshot,
  listServerSnapshots as listServerSnapshotsEndpoint,
  type ServerSnapshot,
} from '@drydock/contracts/compute/compute-snapshots';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import { readForRequest } from '../changes/provider-failure';
import type { HandlerContext } from '../context/context';
import type { MachineSnapshot } from '../providers/compute.types';
import type { ComputeReader } from '../providers/compute-provider';
import { readerOf } from '../servers/machine-work';
import type { Server } from '../servers/server.types';
import { readServer } from '../servers/server-record';
import type { RollbackWorld } from './snapshot.rules';

/**
 * The machine's snapshot as its provider knows it; null if the machine has no snapshot with that id. An empty id is not
 * sent to the provider.
 */
export const readNamedSnapshot = async (
  reader: ComputeReader,
  machineId: string,
  snapshotId: string,
  signal: AbortSignal,
): Promise<MachineSnapshot | null> => (snapshotId === '' ? null : reader.readSnapshot(machineId, snapshotId, signal));

/** The facts that decide a rollback, read from the provider now. */
export async function readRollbackWorld(
  context: Pick<HandlerContext, 'targets'>,
  server: Server,
  snapshotId: string,
): Promise<RollbackWorld> {
  const reader = readerOf(context, server);
  const { capabilities } = reader;
  const changesRootPassword = reader.changesRootPassword === true && !server.hasSshKeys;
  const { machineId } = server;
  if (machineId === null) return { machine: null, snapshot: null, capabilities, changesRootPassword };
  const [machine, snapshot] = await readForRequest((signal) =>
    Promise.all([reader.readMachine(machineId, signal), readNamedSnapshot(reader, machineId, snapshotId, signal)]),
  );
  return { machine, snapshot, capabilities, changesRootPassword };
}

interface Positioned {
  id: string;
  createdAt: Date;
}

/**
 * Orders snapshots by age, newest first, and by id if they are equally old. A snapshot that is added or removed does
 * not change the order of the rest.
 */
const byAge = (one: Positioned, other: Positioned): number =>
  other.createdAt.getTime() - one.createdAt.getTime() || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0);

/** The next `take` snapshots after `after`, which has the form `<milliseconds> <id>`. Null begins with the newest. */
function pageBehind<Snapshot extends Positioned>(
  all: readonly Snapshot[],
  after: string | null,
  take: number,
): Snapshot[] {
  const sorted = [...all].sort(byAge);
  if (after === null) return sorted.slice(0, take);
  const [ms = '', ...id] = after.split(' ');
  const last = { id: id.join(' '), createdAt: new Date(Number(ms)) };
  return sorted.filter((snapshot) => byAge(last, snapshot) < 0).slice(0, take);
}

const viewSnapshot = ({ id, description, status, createdAt, sizeGb }: MachineSnapshot): ServerSnapshot => ({
  id,
  description,
  status,
  created_at: createdAt.toISOString(),
  size_gb: sizeGb,
});

export const listSnapshots = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { pager } = context;
      const { caller, params, query, now } = request;
      const binding = {
        list: listServerSnapshotsEndpoint.id,
        keyId: caller.keyId,
        filter: `${caller.orgId}:${caller.mode}:${params.serverId}`,
      };
      const page = pager.read(query, binding, now);
      const server = await readServer(context, request);
      const { machineId } = server;
      const all =
        machineId === null
          ? []
          : await readForRequest((signal) => readerOf(context, server).listSnapshots(machineId, signal));
      const rows = pageBehind(all, page.after, page.limit + 1);
      const positionOf = ({ id, createdAt }: (typeof rows)[number]): string => `${createdAt.getTime()} ${id}`;
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf, view: viewSnapshot }) };
    },
  }) satisfies ReadHandlers<typeof listServerSnapshotsEndpoint>;

export const getSnapshot = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const server = await readServer(context, request);
      const { machineId } = server;
      const { snapshotId } = request.params;
      const read = (signal: AbortSignal) =>
        readNamedSnapshot(readerOf(context, server), machineId ?? '', snapshotId, signal);
      const snapshot = machineId === null ? null : await readForRequest(read);
      if (snapshot === null) throw problem('server_snapshot_not_found');
      return { status: 200, body: viewSnapshot(snapshot) };
    },
  }) satisfies ReadHandlers<typeof getServerSnapshot>;
