import type { getDatabase as endpoint } from '@drydock/contracts/databases/databases';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { viewDatabase } from './database.view';
import { readDatabase } from './find-database';

export const getDatabase = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: viewDatabase(await readDatabase(context, request)) }),
  }) satisfies ReadHandlers<typeof endpoint>;
