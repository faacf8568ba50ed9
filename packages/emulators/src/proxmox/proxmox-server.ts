import { processFields, readConfig, secretField } from '@drydock/service/process';
import { z } from 'zod';
import { runEmulator } from '../protocol/emulator-server';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { createProxmoxEmulator } from './proxmox-emulator';
import { fasterTasks } from './proxmox-world';

const configShape = {
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

runEmulator(
  () => readConfig(configShape),
  (config) =>
    createProxmoxEmulator({
      stateDir: config.STATE_DIR,
      tokens: parseTokens(config.API_TOKENS),
      readerTokens: parseOptionalTokens(config.API_READER_TOKENS),
      adminToken: config.ADMIN_TOKEN,
      clockScale: config.CLOCK_SCALE,
      taskSeconds: fasterTasks(config.TASK_SPEED),
    }),
);
