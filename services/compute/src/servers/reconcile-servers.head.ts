import { z } from 'zod';

export const reconcileServersHead = {
  kind: 'reconcile_servers',
  input: z.strictObject({ deployTarget: z.string() }),
  steps: [{ name: 'compare' }],
} as const;
