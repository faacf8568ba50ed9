import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { timestampSchema, uuidSchema } from '../platform/values';
import { siteId } from './sites';

export const siteAppSchema = z
  .strictObject({
    site_id: uuidSchema.describe('The site.'),
    has_app: z.boolean().describe('Whether the site has an application.'),
    generation: z
      .int()
      .min(0)
      .describe(
        'Counts the processes that the application has had. A restart has taken effect when it is greater than before.',
      ),
    last_restart_at: timestampSchema.nullable().describe('When a restart was last asked for; null if never.'),
    in_progress: z
      .boolean()
      .describe('Whether other work is running on the site. A restart is refused while it is true.'),
  })
  .meta({ id: 'SiteApp' });
export type SiteApp = z.infer<typeof siteAppSchema>;

export const appRestartSchema = z
  .strictObject({
    site_id: uuidSchema.describe('The site.'),
    restarted_at: timestampSchema.describe('When the restart was recorded.'),
    takes_effect: z.literal('next_request').describe('The next request is answered by a fresh process.'),
  })
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

/** Endpoint 7 of interface.md. */
export const restartSiteApp = endpoint({
  id: 'restartSiteApp',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/app/restart',
  summary: "Restart the site's application: its next request is answered by a fresh process",
  about: 'Requests under way may be cut off. Files and database are not touched.',
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

export const preflightSiteAppRestart = endpoint({
  id: 'preflightSiteAppRestart',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/app/restart/preflight',
  summary: 'What a restart would do, and the refusal it would give; changes nothing',
  permissions: ['hosting.deploy.manage'],
  params: { siteId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
