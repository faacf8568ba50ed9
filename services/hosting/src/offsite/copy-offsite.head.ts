import { offsiteCopyKindSchema } from '@drydock/contracts/offsite';
import { sitePlatformSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

export const copyOffsiteHead = {
  kind: 'copy_offsite',
  input: z.strictObject({ copyId: z.uuid(), destinationId: z.uuid(), kind: offsiteCopyKindSchema, platform: sitePlatformSchema }),
  steps: [{ name: 'recheck' }, { name: 'pack' }, { name: 'verify' }],
} as const;
