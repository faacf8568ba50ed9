import { listServerSnapshots as endpoint, type getServerSnapshot } from '@drydock/contracts/compute/compute-snapshots';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import { lookedUp } from '../changes/provider-unavailable';
import type { HandlerContext } from '../context';
import { readServer } from '../servers/find-server';
import { readerOf } from '../servers/look-at-machine';
import { readNamedSnapshot } from './look-at-snapshot';
import { pageBehind } from './page-snapshots.rules';
import { viewSnapshot } from './snapshot.view';

export const listSnapshots = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { pager } = context;
      const { caller, params, query, now } = request;
      const binding = {
        list: endpoint.id,
        keyId: caller.keyId,
        filter: `${caller.orgId}:${caller.mode}:${params.serverId}`,
      };
      const page = pager.read(query, binding, now);
      const server = await readServer(context, request);
      const { machineId } = server;
      const all =
        machineId === null
          ? []
          : await lookedUp((signal) => readerOf(context, server).listSnapshots(machineId, signal));
      const rows = pageBehind(all, page.after, page.limit + 1);
      const positionOf = ({ id, createdAt }: (typeof rows)[number]): string => `${createdAt.getTime()} ${id}`;
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf, view: viewSnapshot }) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

export const getSnapshot = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const server = await readServer(context, request);
      const { machineId } = server;
      const { snapshotId } = request.params;
      const look = (signal: AbortSignal) =>
        readNamedSnapshot(readerOf(context, server), machineId ?? '', snapshotId, signal);
      const snapshot = machineId === null ? null : await lookedUp(look);
      if (snapshot === null) throw problem('server_snapshot_not_found');
      return { status: 200, body: viewSnapshot(snapshot) };
    },
  }) satisfies ReadHandlers<typeof getServerSnapshot>;
