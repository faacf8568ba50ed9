import { processFields, readConfig, secretField } from '@drydock/service/process';
import { z } from 'zod';
import { runEmulator } from '../protocol/emulator-server';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { createVendorEmulator } from './vendor-emulator';

const configShape = {
  ...processFields('vendor-stand-in'),
  STATE_DIR: z.string().min(1).meta({ description: 'Folder of its state, its ledger and the content of its packages' }),
  ACCOUNT_READER_KEYS: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The same: keys that can only read', secret: true }),
  ACCOUNT_KEYS: z.string().min(1).meta({ description: 'Accounts and their keys: name=key,name=key', secret: true }),
  ADMIN_TOKEN: secretField('Bearer of the calls under /emulator'),
  CLOCK_SCALE: z.coerce
    .number()
    .min(0)
    .default(1)
    .meta({ description: "How much faster than ours a new emulator's time goes" }),
  JOB_SECONDS: z.coerce
    .number()
    .min(0)
    .default(20)
    .meta({ description: 'How long a snapshot or a restore takes, in its own time' }),
};

runEmulator(
  () => readConfig(configShape),
  (config) =>
    createVendorEmulator({
      stateDir: config.STATE_DIR,
      keys: parseTokens(config.ACCOUNT_KEYS),
      readerKeys: parseOptionalTokens(config.ACCOUNT_READER_KEYS),
      adminToken: config.ADMIN_TOKEN,
      clockScale: config.CLOCK_SCALE,
      jobSeconds: config.JOB_SECONDS,
    }),
);
