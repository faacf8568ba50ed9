import { z } from 'zod';

export const deleteSnapshotHead = {
  kind: 'delete_snapshot',
  input: z.strictObject({ deployTarget: z.string(), machineId: z.string(), snapshotId: z.string() }),
  steps: [{ name: 'prepare' }, { name: 'send' }, { name: 'follow' }],
} as const;
