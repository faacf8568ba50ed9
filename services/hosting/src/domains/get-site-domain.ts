import type { getSiteDomain as endpoint, SiteDomain } from '@drydock/contracts/hosting/site-domain';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import type { Site } from '../sites/site.types';
import { readProvenAt } from './domain.store';

export const getSiteDomain = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      return { status: 200, body: viewSiteDomain(context, site, await readProvenAt(context.database.pool, site.id)) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

export const viewSiteDomain = ({ domainProofs }: HandlerContext, site: Site, provenAt: Date | null): SiteDomain => ({
  site_id: site.id,
  domain: site.primaryDomain,
  status: provenAt === null ? 'unproven' : 'proven',
  proven_at: provenAt?.toISOString() ?? null,
  proofs: domainProofs.proofOf({ orgId: site.orgId, domain: site.primaryDomain }),
});
