import { z } from 'zod';

export const retireOldInstanceHead = {
  kind: 'retire_old_instance',
  input: z.strictObject({ upgradeId: z.string(), toMajor: z.int(), path: z.enum(['logical', 'offline']) }),
  steps: [{ name: 'retire' }],
} as const;

/** There is one old instance at most. */
export const retireScheduleOf = (databaseId: string): string => `retire_old_instance:${databaseId}`;
