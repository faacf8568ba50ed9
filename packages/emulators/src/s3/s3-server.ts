import { runEmulator } from '../protocol/emulator-server';
import { readS3EmulatorConfig } from './config';
import { createS3Emulator } from './s3-emulator';

runEmulator(
  readS3EmulatorConfig,
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
