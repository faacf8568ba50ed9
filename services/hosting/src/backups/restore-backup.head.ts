import { sitePlatformSchema, siteStatusSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

const names = [
  'recheck',
  'fetch',
  'verify',
  'stage',
  'freeze',
  'switch',
  'probe',
  'thaw',
  'pack_safety_copy',
  'verify_safety_copy',
  'retire',
] as const;

/** `safetyCopyId`: the backup that the replaced state becomes. `statusBefore`: what the site goes back to afterwards. */
export const restoreBackupHead = {
  kind: 'restore_backup',
  input: z.strictObject({
    backupId: z.uuid(),
    safetyCopyId: z.uuid(),
    platform: sitePlatformSchema,
    statusBefore: siteStatusSchema,
  }),
  steps: names.map((name) => ({ name })),
};
