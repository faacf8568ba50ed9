import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { timestampSchema, uuidSchema } from '../platform/values';
import { siteId } from './sites';

/**
 * The domain of a site. One of the `proofs` is enough to prove the domain. The values of the proofs belong to the
 * organisation and this domain, and do not change.
 */
export const siteDomainSchema = z
  .strictObject({
    site_id: uuidSchema.describe('The site.'),
    domain: z.string().describe('The domain that it is served under.'),
    status: z.enum(['unproven', 'proven']).describe('A domain that is not proven gives way to whoever proves it.'),
    proven_at: timestampSchema.nullable().describe('When its proof was seen; null before.'),
    proofs: z
      .strictObject({
        dns: z
          .strictObject({
            type: z.literal('TXT').describe('The type of the record.'),
            name: z.string().describe('The name of the record.'),
            value: z.string().describe('The text of the record.'),
          })
          .meta({ id: 'DnsProof' })
          .describe('A DNS record to publish.'),
        http: z
          .strictObject({
            url: z.string().describe('Where it must be found.'),
            content: z.string().describe('What it must hold.'),
          })
          .meta({ id: 'HttpProof' })
          .describe('A file to serve.'),
      })
      .meta({ id: 'DomainProofs' })
      .describe("Either one is enough. The value is the organisation's own for this domain and does not change."),
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
