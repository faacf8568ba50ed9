import { z } from 'zod';

export const deleteDatabaseHead = {
  kind: 'delete_database',
  input: z.strictObject({}),
  steps: [{ name: 'destroy' }, { name: 'discard_backups' }],
} as const;
