import { z } from 'zod';

export const takeBackupHead = {
  kind: 'take_database_backup',
  input: z.strictObject({ backupId: z.uuid() }),
  steps: [{ name: 'pack' }, { name: 'verify' }],
} as const;
