import { z } from 'zod';

/** Ends backups whose retention is over, and what nobody will ask for any more. */
export const expireBackupsHead = {
  kind: 'expire_backups',
  input: z.strictObject({}),
  steps: [{ name: 'forget_workflows' }, { name: 'expire' }, { name: 'remove' }],
} as const;
