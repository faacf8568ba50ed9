import type { getSiteApp as endpoint } from '@drydock/contracts/hosting/site-app';
import type { ReadHandlers } from '@drydock/service/http/route';
import { isInProgress } from '@drydock/workflow/definition/refusal.rules';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { describeApp } from '../providers/site-host';
import { readSite } from '../sites/find-site';
import { siteResourceKey } from '../sites/site-names';
import { hostUnavailable } from './host-unavailable';

export const getApp = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const app = await describeApp(context.siteHosts, site).catch((error: unknown) => {
        throw hostUnavailable(error);
      });
      const body = {
        site_id: site.id,
        has_app: app !== null,
        generation: app?.generation ?? 0,
        last_restart_at: app?.lastRestartAt?.toISOString() ?? null,
        in_progress: isInProgress(await findUnfinished(context.database.sql(), siteResourceKey(site.id))),
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
