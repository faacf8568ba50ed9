import type { preflightSiteAppRestart as endpoint } from '@drydock/contracts/hosting/site-app';
import type { ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { describeApp } from '../providers/site-host';
import { readSite } from '../sites/find-site';
import { sitePath, siteResourceKey } from '../sites/site-names';
import { refuseRestart } from './app.rules';
import { hostUnavailable } from './host-unavailable';

/**
 * The preflight of the restart: it asks the same rule and changes nothing. When the host does not answer, the preflight
 * reports the same refusal as the restart itself.
 */
export const preflightRestart = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const app = await describeApp(context.siteHosts, site).catch((error: unknown) => ({ error }));
      const hasApp = app === null ? false : 'error' in app ? null : true;
      const unfinished = await findUnfinished(context.database.sql(), siteResourceKey(site.id));
      const refused = refuseRestart({ site, unfinished, hasApp });
      const unanswered = hasApp === null ? hostUnavailable() : null;
      const refusal = refused === null ? unanswered : problemOf(refused);
      const body = {
        would: `End the application of ${site.primaryDomain} and answer its next request by a fresh process; requests under way may be cut off`,
        resource: sitePath(site.id),
        point: null,
        space: null,
        refusal: refusal?.body(request.requestId) ?? null,
        findings: [],
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
