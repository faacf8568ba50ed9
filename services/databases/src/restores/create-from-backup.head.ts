import { z } from 'zod';

export const createFromBackupHead = {
  kind: 'create_database_from_backup',
  input: z.strictObject({ major: z.int(), size: z.string(), databaseName: z.string(), username: z.string(), backupId: z.uuid() }),
  steps: [{ name: 'provision' }, { name: 'load' }],
} as const;
