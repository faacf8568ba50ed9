import type { createSite as endpoint } from '@drydock/contracts/hosting/sites';
import { problem } from '@drydock/contracts/platform/problem';
import { assertWithinQuota, changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import { acceptWorkflow, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { createSiteWorkflow } from './create-site.workflow';
import { viewSite } from './find-site';
import { assertOffersDatabase, offersPlatform } from './offers-platform';
import { databaseOf } from './site.rules';
import { insertSite } from './site.store';
import { onSite, ownerOf, sitePath } from './site.types';

export const createSite = (context: HandlerContext) =>
  ({
    preload: async ({ caller, body }) => {
      const { orgId, mode } = caller;
      const { platform, primary_domain: domain } = body;
      if (!offersPlatform(context, platform, mode)) throw problem('platform_unavailable');
      await assertOffersDatabase(context, platform, body.database ?? null);
      if (!context.domainProofs.isRequired(mode)) return { isProven: true };
      // A vendor gives a domain to the first customer who names it, so it must be proven first.
      if (platform !== 'vendor') return { isProven: false };
      if (await context.domainProofs.isShown({ orgId, domain })) return { isProven: true };
      throw problem('domain_not_proven', { extra: { proofs: context.domainProofs.proofOf({ orgId, domain }) } });
    },
    execute: async (tx: Tx, request, { isProven }) => {
      const { name, primary_domain: primaryDomain, platform, database = null, plan } = request.body;
      const metadata = changeMetadata({}, request.body.metadata);
      await assertWithinQuota(context.database.sql(tx), context.quota, ownerOf(request.caller));
      const site = await insertSite(tx, {
        id: uuidv7(),
        ...ownerOf(request.caller),
        name,
        primaryDomain,
        domainProvenAt: isProven ? request.now : null,
        platform,
        database: databaseOf({ platform, database }),
        status: 'provisioning',
        dailyBackups: plan.daily_backups,
        backupRetentionDays: plan.backup_retention_days,
        metadata,
      });
      if (site === null) throw problem('domain_in_use');
      const input = { domain: primaryDomain, platform, ...(database === 'mysql' && { database }) };
      const acceptance = { ...onSite(site.id), definition: createSiteWorkflow, input, action: 'site.create' };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      return {
        status: 202,
        headers: followHeaders(sitePath(site.id), workflowId),
        body: { ...viewSite(site), workflow_id: workflowId },
      };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, { isProven: boolean }>;
