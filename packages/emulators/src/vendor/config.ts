import { type ConfigOf, processFields, readConfig, secretField } from '@drydock/service/process';
import { z } from 'zod';

export const vendorEmulatorConfigShape = {
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

export const readVendorEmulatorConfig = (): ConfigOf<typeof vendorEmulatorConfigShape> =>
  readConfig(vendorEmulatorConfigShape, process.env);
