import { z } from 'zod';

/** The backups are made ahead of time, so that whoever retries a step writes the same ones. */
export const upgradeDatabaseHead = {
  kind: 'upgrade_database',
  input: z.strictObject({ toMajor: z.int(), fromVersion: z.string(), backupId: z.uuid(), newBackupId: z.uuid() }),
  steps: [
    { name: 'precheck' },
    { name: 'back_up' },
    { name: 'prove_backup' },
    { name: 'create_target' },
    { name: 'copy_schema' },
    { name: 'copy_data' },
    { name: 'catch_up' },
    { name: 'cutover' },
    { name: 'compare' },
    { name: 'finish' },
    { name: 'back_up_new' },
    { name: 'verify_new' },
  ],
} as const;
