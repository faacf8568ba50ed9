import type { getSite as endpoint } from '@drydock/contracts/hosting/sites';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readSite } from './find-site';
import { viewSite } from './site.view';

export const getSite = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: viewSite(await readSite(context, request)) }),
  }) satisfies ReadHandlers<typeof endpoint>;
