import {
  type getDatabase as getDatabaseEndpoint,
  listDatabases as listDatabasesEndpoint,
} from '@drydock/contracts/databases/databases';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { listDatabases as listRows } from './database.store';
import { ownerOf } from './database.types';
import { readDatabase, viewDatabase } from './find-database';

export const getDatabase = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: viewDatabase(await readDatabase(context, request)) }),
  }) satisfies ReadHandlers<typeof getDatabaseEndpoint>;

export const listDatabases = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: listDatabasesEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewDatabase }),
      };
    },
  }) satisfies ReadHandlers<typeof listDatabasesEndpoint>;
