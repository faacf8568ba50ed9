import { sitePlatformSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

export const takeBackupHead = {
  kind: 'take_backup',
  input: z.strictObject({ backupId: z.uuid(), platform: sitePlatformSchema }),
  steps: [{ name: 'recheck' }, { name: 'pack' }, { name: 'verify' }],
} as const;
