import { processFields, readConfig, secretField } from '@drydock/service/process';
import { z } from 'zod';
import { runEmulator } from '../protocol/emulator-server';
import { lockAnswers } from './object-lock';
import { createS3Emulator } from './s3-emulator';

const parseJson = (text: string, context: z.RefinementCtx): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'must be JSON' });
    return z.NEVER;
  }
};

const accountSchema = z.strictObject({
  accessKeyId: z.string().min(1),
  secretAccessKey: z.string().min(1),
  buckets: z.array(z.string()),
  mayRead: z.boolean().optional(),
  mayWrite: z.boolean().optional(),
  mayDelete: z.boolean().optional(),
});

const bucketSchema = z.strictObject({ name: z.string(), hasObjectLock: z.boolean() });

const configShape = {
  ...processFields('s3-stand-in'),
  STATE_DIR: z.string().min(1).meta({ description: 'Folder of its buckets and its ledger' }),
  ACCOUNTS: z.string().transform(parseJson).pipe(z.array(accountSchema).min(1)).meta({
    description: 'JSON: [{accessKeyId, secretAccessKey, buckets: [name or "*"], mayRead?, mayWrite?, mayDelete?}]',
    secret: true,
  }),
  BUCKETS: z
    .string()
    .default('[]')
    .transform(parseJson)
    .pipe(z.array(bucketSchema))
    .meta({ description: 'JSON: [{name, hasObjectLock}], made when they are missing' }),
  ADMIN_TOKEN: secretField('Bearer of the calls under /emulator'),
  REGION: z.string().min(1).default('us-east-1').meta({ description: 'What it says its region is' }),
  LOCK_ANSWER: z
    .enum(lockAnswers)
    .default('access_denied')
    .meta({ description: 'How a delete of a locked version ends' }),
  CLOCK_SCALE: z.coerce
    .number()
    .min(0)
    .default(1)
    .meta({ description: "How much faster than ours a new emulator's time goes" }),
};

runEmulator(
  () => readConfig(configShape),
  (config) =>
    createS3Emulator({
      stateDir: config.STATE_DIR,
      accounts: config.ACCOUNTS,
      buckets: config.BUCKETS,
      adminToken: config.ADMIN_TOKEN,
      region: config.REGION,
      lockAnswer: config.LOCK_ANSWER,
      clockScale: config.CLOCK_SCALE,
    }).server,
);
