import { powerStateSchema } from '@drydock/contracts/compute-servers';
import { z } from 'zod';

export const rollBackServerHead = {
  kind: 'roll_back_server',
  /** `powerBefore`: what the machine was doing when it was asked; said again when nothing came of it. */
  input: z.strictObject({ deployTarget: z.string(), machineId: z.string(), snapshotId: z.string(), powerBefore: powerStateSchema }),
  steps: [{ name: 'prepare' }, { name: 'send' }, { name: 'follow' }, { name: 'observe' }],
} as const;
