import { problem } from '@drydock/contracts/problem';
import type { createSite as endpoint } from '@drydock/contracts/sites';
import type { ActHandlers } from '@drydock/service-kit/route';
import { acceptWorkflow, followHeaders } from '@drydock/workflow-kit/accept-workflow';
import { uuidv7 } from 'uuidv7';
import { type HandlerContext, ownerOf } from '../context';
import type { Tx } from '../database.store';
import { createSiteHead } from './create-site.head';
import { offersPlatform } from './offers-platform';
import { insertSite } from './site.store';
import { viewSite } from './site.view';
import { onSite, sitePath } from './site-names';

export const createSite = (context: HandlerContext) =>
  ({
    act: async (tx: Tx, request) => {
      const { name, primary_domain: primaryDomain, platform, plan } = request.body;
      if (!offersPlatform(context, platform, request.caller.mode)) throw problem('platform_unavailable');
      const site = await insertSite(tx, {
        id: uuidv7(),
        ...ownerOf(request.caller),
        name,
        primaryDomain,
        platform,
        status: 'provisioning',
        dailyBackups: plan.daily_backups,
        backupRetentionDays: plan.backup_retention_days,
      });
      if (site === null) throw problem('domain_in_use');
      const input = { domain: primaryDomain, platform };
      const acceptance = { ...onSite(site.id), definition: createSiteHead, input, action: 'site.create' };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      return { status: 202, headers: followHeaders(sitePath(site.id), workflowId), body: viewSite(site) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
