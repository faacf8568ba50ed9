import type { getDatabaseCatalogue as endpoint } from '@drydock/contracts/databases';
import type { ReadHandlers } from '@drydock/service-kit/route';
import { catalogue } from './catalogue';

export const getCatalogue = () =>
  ({
    read: async () => ({ status: 200, body: catalogue }),
  }) satisfies ReadHandlers<typeof endpoint>;
