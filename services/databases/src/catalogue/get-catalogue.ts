import type { getDatabaseCatalogue as endpoint } from '@drydock/contracts/databases/databases';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { catalogueOf } from './catalogue';

/** While the host does not answer, what needs nothing of it is offered. */
export const getCatalogue = ({ provider }: HandlerContext) =>
  ({
    read: async () => ({ status: 200, body: catalogueOf(await provider.listMajors().catch(() => [])) }),
  }) satisfies ReadHandlers<typeof endpoint>;
