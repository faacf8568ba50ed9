import { type ConfigOf, processFields, readConfig, secretField } from '@drydock/service/process';
import { z } from 'zod';

export const proxmoxEmulatorConfigShape = {
  ...processFields('proxmox-stand-in'),
  STATE_DIR: z.string().min(1).meta({ description: 'Folder of its state and its ledger' }),
  API_TOKENS: z
    .string()
    .min(1)
    .meta({ description: 'Accounts and the secrets of their API tokens: name=secret,name=secret', secret: true }),
  API_READER_TOKENS: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The same of tokens called reader, which have the role PVEAuditor', secret: true }),
  ADMIN_TOKEN: secretField('Bearer of the calls under /emulator'),
  CLOCK_SCALE: z.coerce
    .number()
    .min(0)
    .default(1)
    .meta({ description: "How much faster than ours a new emulator's time goes" }),
  TASK_SPEED: z.coerce
    .number()
    .positive()
    .default(1)
    .meta({ description: 'How much faster its tasks are than usual, by its own time' }),
};

export const readProxmoxEmulatorConfig = (): ConfigOf<typeof proxmoxEmulatorConfigShape> =>
  readConfig(proxmoxEmulatorConfigShape, process.env);
