import type { createSite as createSiteEndpoint, SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import { problem } from '@drydock/contracts/platform/problem';
import type { Mode } from '@drydock/contracts/platform/values';
import { assertWithinQuota, changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import { acceptWorkflow, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { createSiteWorkflow } from './create-site.workflow';
import { findFormerSite } from './prove-site-domain';
import { databaseOf } from './site.rules';
import { freeDomain, insertSite } from './site.store';
import { onSite, ownerOf, sitePath } from './site.types';
import { hostUnavailable, viewSite } from './site-record';

/**
 * Whether the installation offers the platform in this mode. Vendors and ssh hosts are configured separately for each
 * mode, so that sandbox sites never reach a live vendor or host.
 */
export function offersPlatform(
  { siteHosts, sshModes, vendorTimelines }: HandlerContext,
  platform: SitePlatform,
  mode: Mode,
): boolean {
  if (siteHosts[platform] === undefined) return false;
  if (platform === 'ssh') return sshModes.includes(mode);
  return platform !== 'vendor' || vendorTimelines[mode] !== undefined;
}

/**
 * Whether a site of the platform can have this database. Null stands for the default of the platform. The site agent is
 * not asked about Postgres, because it always has it.
 */
async function offersDatabase(
  { siteHosts }: HandlerContext,
  platform: SitePlatform,
  database: SiteDatabase | null,
): Promise<boolean> {
  if (database === null || (platform === 'local' && database === 'postgres')) return true;
  return (await siteHosts[platform]?.listDatabases())?.includes(database) ?? false;
}

/** Throws `site_database_not_offered`, or 503 if the host does not answer. */
async function assertOffersDatabase(
  context: HandlerContext,
  platform: SitePlatform,
  database: SiteDatabase | null,
): Promise<void> {
  const isOffered = await offersDatabase(context, platform, database).catch((error: unknown) => {
    throw hostUnavailable(error);
  });
  if (!isOffered) throw problem('site_database_not_offered');
}

/**
 * Whether the host has the programs of a deleted site's database. Also true if the host does not answer, because an
 * accepted restore waits for the host.
 */
export const mayOfferDatabase = (
  context: HandlerContext,
  site: { platform: SitePlatform; database: SiteDatabase | null },
): Promise<boolean> => offersDatabase(context, site.platform, site.database).catch(() => true);

interface DomainProof {
  isProven: boolean;
  /** The site that loses the domain to the new one. Null if there is none. */
  formerSiteId: string | null;
}

export const createSite = (context: HandlerContext) =>
  ({
    preload: async ({ caller, body }): Promise<DomainProof> => {
      const { orgId, mode } = caller;
      const { platform, primary_domain: domain } = body;
      if (!offersPlatform(context, platform, mode)) throw problem('platform_unavailable');
      await assertOffersDatabase(context, platform, body.database ?? null);
      if (!context.domainProofs.isRequired(mode)) return { isProven: true, formerSiteId: null };
      // A vendor gives a domain to the first customer who names it. So the domain must be proven before the vendor
      // hears of it.
      if (platform !== 'vendor') return { isProven: false, formerSiteId: null };
      if (await context.domainProofs.isShown({ orgId, domain }))
        return { isProven: true, formerSiteId: await findFormerSite(context, mode, domain) };
      throw problem('domain_not_proven', { extra: { proofs: context.domainProofs.proofOf({ orgId, domain }) } });
    },
    execute: async (tx: Tx, request, { isProven, formerSiteId }) => {
      const { name, primary_domain: primaryDomain, platform, database = null, plan } = request.body;
      const metadata = changeMetadata({}, request.body.metadata);
      await assertWithinQuota(context.database.sql(tx), context.quota, ownerOf(request.caller));
      if (formerSiteId !== null)
        await freeDomain(tx, { mode: request.caller.mode, domain: primaryDomain, formerSiteId });
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
  }) satisfies ExecuteHandlers<typeof createSiteEndpoint, Tx, DomainProof>;
