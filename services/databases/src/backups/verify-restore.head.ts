import { z } from 'zod';

/** The weekly proof of a database's newest backup. */
export const verifyRestoreHead = {
  kind: 'verify_database_restore',
  input: z.strictObject({}),
  steps: [{ name: 'restore' }],
} as const;

export const verifyScheduleOf = (databaseId: string): string => `verify_restore:${databaseId}`;
