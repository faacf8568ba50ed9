import type { SiteView } from '@drydock/contracts/hosting/sites';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { WorkflowParent } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { findSite, lockSite } from './site.store';
import { ownerOf, type Site, siteSubject } from './site.types';

/** The refusal for a site's host that did not answer. Nothing was started. */
export const hostUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'site-host' },
    retryAfterSeconds: 5,
    ...(cause === undefined ? {} : { cause }),
  });

interface AboutSite {
  caller: Caller;
  params: { siteId: string };
}

/** The caller's site. Throws the same 404 in every other case. */
export async function readSite(context: HandlerContext, { caller, params }: AboutSite): Promise<Site> {
  return present(await findSite(context.database.pool, ownerOf(caller), params.siteId));
}

/** Reads the caller's site as {@link readSite} does, and locks its row until the transaction ends. */
export async function holdSite(tx: Tx, { caller, params }: AboutSite): Promise<Site> {
  return present(await lockSite(tx, ownerOf(caller), params.siteId));
}

function present(site: Site | null): Site {
  if (site === null) throw problem('site_not_found');
  return site;
}

export const siteParent = (context: HandlerContext): WorkflowParent<Tx, 'siteId'> => ({
  context,
  param: 'siteId',
  subjectOf: siteSubject,
  assertThere: (caller, siteId) => readSite(context, { caller, params: { siteId } }),
});

export function viewSite(site: Site): SiteView {
  return {
    id: site.id,
    org_id: site.orgId,
    name: site.name,
    primary_domain: site.primaryDomain,
    platform: site.platform,
    database: site.database,
    status: site.status,
    url: site.url,
    plan: { daily_backups: site.dailyBackups, backup_retention_days: site.backupRetentionDays },
    metadata: site.metadata,
    created_at: site.createdAt.toISOString(),
  };
}
