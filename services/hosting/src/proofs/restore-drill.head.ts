import { z } from 'zod';

/** Restores a real backup onto a site of the platform's own and looks whether it is what was backed up. */
export const restoreDrillHead = {
  kind: 'restore_drill',
  input: z.strictObject({}),
  steps: [{ name: 'choose' }, { name: 'record_sentinels' }, { name: 'restore' }, { name: 'compare' }, { name: 'clear' }],
} as const;
