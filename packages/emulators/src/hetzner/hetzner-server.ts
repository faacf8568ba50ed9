import { processFields, readConfig, secretField } from '@drydock/service/process';
import { z } from 'zod';
import { runEmulator } from '../protocol/emulator-server';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { createHetznerEmulator } from './hetzner-emulator';
import { fasterActions } from './hetzner-world';

const configShape = {
  ...processFields('hetzner-stand-in'),
  STATE_DIR: z.string().min(1).meta({ description: 'Folder of its state and its ledger' }),
  PROJECT_TOKENS: z
    .string()
    .min(1)
    .meta({ description: 'Projects and their tokens: name=token,name=token', secret: true }),
  PROJECT_READER_TOKENS: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The same: tokens that can only read', secret: true }),
  ADMIN_TOKEN: secretField('Bearer of the calls under /emulator'),
  CLOCK_SCALE: z.coerce
    .number()
    .min(0)
    .default(1)
    .meta({ description: "How much faster than ours a new emulator's time goes" }),
  ACTION_SPEED: z.coerce
    .number()
    .positive()
    .default(1)
    .meta({ description: 'How much faster its actions are than usual, by its own time' }),
  CALLS_PER_HOUR: z.coerce.number().int().min(1).default(3_600).meta({ description: 'Rate limit of each project' }),
};

runEmulator(
  () => readConfig(configShape),
  (config) =>
    createHetznerEmulator({
      stateDir: config.STATE_DIR,
      tokens: parseTokens(config.PROJECT_TOKENS),
      readerTokens: parseOptionalTokens(config.PROJECT_READER_TOKENS),
      adminToken: config.ADMIN_TOKEN,
      clockScale: config.CLOCK_SCALE,
      callsPerHour: config.CALLS_PER_HOUR,
      actionSeconds: fasterActions(config.ACTION_SPEED),
    }),
);
