import type { getSiteApp as endpoint } from '@drydock/contracts/site-app';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { describeApp } from '../providers/site-host';
import { readSite } from '../sites/find-site';
import { hostUnavailable } from './host-unavailable';

export const getApp = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const app = await describeApp(context.siteHosts, site).catch(hostUnavailable);
      const body = {
        site_id: site.id,
        has_app: app !== null,
        generation: app?.generation ?? 0,
        last_restart_at: app?.lastRestartAt?.toISOString() ?? null,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
