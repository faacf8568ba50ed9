import { z } from 'zod';

export const restartAppHead = {
  kind: 'restart_app',
  input: z.strictObject({ platform: z.enum(['local', 'ssh', 'vendor']) }),
  steps: [{ name: 'touch' }, { name: 'confirm' }],
} as const;
