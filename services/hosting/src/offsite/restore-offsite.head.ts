import { z } from 'zod';
import { switchOverInput, switchOverSteps } from '../backups/switch-over.head';

export const restoreOffsiteHead = {
  kind: 'restore_offsite',
  input: z.strictObject({ copyId: z.uuid(), destinationId: z.uuid(), ...switchOverInput }),
  steps: ['recheck', 'fetch', 'verify', 'stage', 'clear', ...switchOverSteps].map((name) => ({ name })),
};
