import { z } from 'zod';

/** Restores a real backup onto a site of the platform's own and looks whether it is what was backed up. */
export const restoreDrillHead = {
  kind: 'restore_drill',
  /** Nothing is done while the last one that passed is younger: what failed is tried again sooner. */
  input: z.strictObject({ passedAgeMinDays: z.number().min(0) }),
  steps: [{ name: 'choose' }, { name: 'record_sentinels' }, { name: 'restore' }, { name: 'compare' }, { name: 'clear' }],
} as const;
