import { z } from 'zod';

/** Ends backups whose retention is over. */
export const expireBackupsHead = {
  kind: 'expire_backups',
  input: z.strictObject({}),
  steps: [{ name: 'expire' }, { name: 'remove' }],
} as const;
