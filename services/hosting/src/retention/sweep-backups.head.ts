import { z } from 'zod';

/** Starts the backups whose turn has come. */
export const sweepBackupsHead = {
  kind: 'sweep_backups',
  input: z.strictObject({}),
  steps: [{ name: 'find_due' }, { name: 'start_due' }],
} as const;
