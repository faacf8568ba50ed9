import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { timestampSchema, uuidSchema } from '../platform/values';
import { siteId } from './sites';

/** `proofs`: either one is enough. The value is the organisation's own for this domain and does not change. */
export const siteDomainSchema = z
  .strictObject({
    site_id: uuidSchema,
    domain: z.string(),
    status: z.enum(['unproven', 'proven']),
    proven_at: timestampSchema.nullable(),
    proofs: z.strictObject({
      dns: z.strictObject({ type: z.literal('TXT'), name: z.string(), value: z.string() }),
      http: z.strictObject({ url: z.string(), content: z.string() }),
    }),
  })
  .meta({ id: 'SiteDomain' });
export type SiteDomain = z.infer<typeof siteDomainSchema>;

const tags = ['Sites'] as const;

export const getSiteDomain = endpoint({
  id: 'getSiteDomain',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/domain',
  summary: "The site's domain: whether it is proven, and what proves it",
  permissions: ['sites.view'],
  params: { siteId },
  response: { status: 200, schema: siteDomainSchema },
  problems: [],
  tags,
});

export const proveSiteDomain = endpoint({
  id: 'proveSiteDomain',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/domain/prove',
  summary: 'Look for the proof of the domain now; once it was seen, the site has the domain',
  permissions: ['sites.view', 'sites.create'],
  params: { siteId },
  response: { status: 200, schema: siteDomainSchema },
  problems: ['domain_not_proven', 'domain_in_use'],
  tags,
});
