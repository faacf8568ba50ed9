import { z } from 'zod';
import { switchOverInput, switchOverSteps } from './switch-over.head';

export const restoreBackupHead = {
  kind: 'restore_backup',
  input: z.strictObject({ backupId: z.uuid(), ...switchOverInput }),
  steps: ['recheck', 'fetch', 'verify', 'stage', ...switchOverSteps].map((name) => ({ name })),
};
