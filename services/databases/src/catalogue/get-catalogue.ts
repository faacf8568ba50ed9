import type { getDatabaseCatalogue as endpoint } from '@drydock/contracts/databases/databases';
import type { ReadHandlers } from '@drydock/service/http/route';
import { catalogue } from './catalogue';

export const getCatalogue = () =>
  ({
    read: async () => ({ status: 200, body: catalogue }),
  }) satisfies ReadHandlers<typeof endpoint>;
