import { sitePlatformSchema, siteStatusSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

/** What every restore ends with, whatever its release was staged from. */
export const switchOverSteps = [
  'prove_safety_copy',
  'freeze',
  'switch',
  'probe',
  'thaw',
  'pack_safety_copy',
  'verify_safety_copy',
  'retire',
] as const;

/** `safetyCopyId`: the backup that the replaced state becomes. `statusBefore`: what the site goes back to afterwards. */
export const switchOverInput = { safetyCopyId: z.uuid(), platform: sitePlatformSchema, statusBefore: siteStatusSchema };
