import { z } from 'zod';

export const takeSnapshotHead = {
  kind: 'take_snapshot',
  input: z.strictObject({ deployTarget: z.string(), machineId: z.string(), description: z.string() }),
  steps: [{ name: 'prepare' }, { name: 'send' }, { name: 'follow' }],
} as const;
