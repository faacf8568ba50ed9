import type {
  getSiteDomain as getSiteDomainEndpoint,
  proveSiteDomain as proveSiteDomainEndpoint,
  SiteDomain,
} from '@drydock/contracts/hosting/site-domain';
import { problem } from '@drydock/contracts/platform/problem';
import type { Mode } from '@drydock/contracts/platform/values';
import { audit } from '@drydock/service/effects';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { findProvenHolder, readProvenAt, takeDomain } from './site.store';
import { type Site, sitePath } from './site.types';
import { holdSite, readSite } from './site-record';

export const getSiteDomain = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      return { status: 200, body: viewSiteDomain(context, site, await readProvenAt(context.database.pool, site.id)) };
    },
  }) satisfies ReadHandlers<typeof getSiteDomainEndpoint>;

const viewSiteDomain = ({ domainProofs }: HandlerContext, site: Site, provenAt: Date | null): SiteDomain => ({
  site_id: site.id,
  domain: site.primaryDomain,
  status: provenAt === null ? 'unproven' : 'proven',
  proven_at: provenAt?.toISOString() ?? null,
  proofs: domainProofs.proofOf({ orgId: site.orgId, domain: site.primaryDomain }),
});

/**
 * The site that has proven the domain, if the domain no longer shows the proof of that site's organisation. Null if no
 * site has proven the domain. Throws `domain_in_use` if the domain still shows that proof.
 */
export async function findFormerSite(
  { database, domainProofs }: HandlerContext,
  mode: Mode,
  domain: string,
): Promise<string | null> {
  const former = await findProvenHolder(database.pool, mode, domain);
  if (former !== null && (await domainProofs.isShown({ orgId: former.orgId, domain }))) throw problem('domain_in_use');
  return former?.id ?? null;
}

interface Shown {
  /** Whether the site has proven its domain already. */
  isProven: boolean;
  /** See {@link findFormerSite}. */
  formerSiteId: string | null;
}

/**
 * Gives the domain to the site if the domain shows the proof of the site's organisation. Another site that has proven
 * the domain keeps it as long as the domain also shows the proof of that site's organisation.
 */
export const proveSiteDomain = (context: HandlerContext) =>
  ({
    preload: async (request): Promise<Shown> => {
      const { database, domainProofs } = context;
      const { id, orgId, mode, primaryDomain: domain } = await readSite(context, request);
      if ((await readProvenAt(database.pool, id)) !== null) return { isProven: true, formerSiteId: null };
      if (!(await domainProofs.isShown({ orgId, domain }))) throw problem('domain_not_proven');
      return { isProven: false, formerSiteId: await findFormerSite(context, mode, domain) };
    },
    execute: async (tx: Tx, request, { isProven, formerSiteId }) => {
      const { caller, now } = request;
      const site = await holdSite(tx, request);
      const { id: siteId, mode, primaryDomain: domain } = site;
      if (isProven)
        return { status: 200, body: viewSiteDomain(context, site, (await readProvenAt(tx, siteId)) ?? null) };
      if (!(await takeDomain(tx, { siteId, mode, domain, provenAt: now, formerSiteId })))
        throw problem('domain_in_use');
      const { orgId, keyId: actorKeyId } = caller;
      await audit(context.database.sql(tx), {
        orgId,
        mode,
        actorKeyId,
        action: 'site.domain.prove',
        target: sitePath(siteId),
        workflowId: null,
      });
      return { status: 200, body: viewSiteDomain(context, site, now) };
    },
  }) satisfies ExecuteHandlers<typeof proveSiteDomainEndpoint, Tx, Shown>;
