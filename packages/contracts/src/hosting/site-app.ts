import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { timestampSchema, uuidSchema } from '../platform/values';
import { siteId } from './sites';

export const siteAppSchema = z
  .strictObject({
    site_id: uuidSchema,
    has_app: z.boolean(),
    /** Counts the processes that the application has had: a restart has taken effect when it is greater than before. */
    generation: z.int().min(0),
    last_restart_at: timestampSchema.nullable(),
    /** A restart is refused while it is true. */
    in_progress: z.boolean(),
  })
  .meta({ id: 'SiteApp' });
export type SiteApp = z.infer<typeof siteAppSchema>;

export const appRestartSchema = z
  .strictObject({ site_id: uuidSchema, restarted_at: timestampSchema, takes_effect: z.literal('next_request') })
  .meta({ id: 'AppRestart' });
export type AppRestart = z.infer<typeof appRestartSchema>;

const tags = ['Applications'] as const;

export const getSiteApp = endpoint({
  id: 'getSiteApp',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/app',
  summary: "The site's application",
  permissions: ['sites.view'],
  params: { siteId },
  response: { status: 200, schema: siteAppSchema },
  problems: [],
  tags,
});

/** Endpoint 7. */
export const restartSiteApp = endpoint({
  id: 'restartSiteApp',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/app/restart',
  summary: "Restart the site's application: its next request is answered by a fresh process",
  permissions: ['hosting.deploy.manage'],
  params: { siteId },
  response: { status: 200, schema: appRestartSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'no_app',
    'app_restart_blocked',
    'sandbox_unavailable',
    'platform_unsupported',
    'site_suspended',
    'site_not_ready',
  ],
  tags,
});
