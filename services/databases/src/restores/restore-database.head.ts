import { z } from 'zod';

/** The backup of what is replaced has its id ahead of time, so that whoever retries a step writes the same one. */
export const restoreDatabaseHead = {
  kind: 'restore_database',
  input: z.strictObject({ backupId: z.uuid(), safetyCopyId: z.uuid() }),
  steps: [
    { name: 'recheck' },
    { name: 'verify' },
    { name: 'rehearse_copy' },
    { name: 'stage' },
    { name: 'cutover' },
    { name: 'pack_safety_copy' },
    { name: 'verify_safety_copy' },
    { name: 'finish' },
  ],
} as const;
