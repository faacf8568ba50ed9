import { sitePlatformSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

const names = ['recheck', 'verify', 'provision', 'stage', 'switch', 'probe', 'thaw', 'retire'] as const;

/** `siteId`: what it was and will be again. */
export const restoreDeletedSiteHead = {
  kind: 'restore_deleted_site',
  input: z.strictObject({ siteId: z.uuid(), backupId: z.uuid(), platform: sitePlatformSchema, domain: z.string() }),
  steps: names.map((name) => ({ name })),
};
