import { sitePlatformSchema, siteStatusSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

/** `statusBefore`: what the site goes back to when nothing came of it. */
export const deleteSiteHead = {
  kind: 'delete_site',
  input: z.strictObject({
    backupId: z.uuid(),
    platform: sitePlatformSchema,
    statusBefore: siteStatusSchema,
    deletedSiteId: z.uuid(),
    deletedBy: z.string(),
    /** False: nothing is packed, since the customer has said so. Left out by what was accepted before it could be said. */
    takesBackup: z.boolean().default(true),
  }),
  steps: [{ name: 'inspect' }, { name: 'pack' }, { name: 'verify' }, { name: 'destroy' }],
} as const;
