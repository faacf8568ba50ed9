import { z } from 'zod';

export const retireOldInstanceHead = {
  kind: 'retire_old_instance',
  // Not strict: schedules of earlier versions say more.
  input: z.object({ upgradeId: z.string() }),
  steps: [{ name: 'retire' }],
} as const;

/** The last upgrade's retirement is that of all before it. */
export const retireScheduleOf = (databaseId: string): string => `retire_old_instance:${databaseId}`;
