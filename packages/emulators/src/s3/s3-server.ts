import { runStandIn } from '../protocol/run-stand-in';
import { readS3StandInConfig } from './config';
import { createS3StandIn } from './s3-stand-in';

runStandIn(
  readS3StandInConfig,
  (config) =>
    createS3StandIn({
      stateDir: config.STATE_DIR,
      accounts: config.ACCOUNTS,
      buckets: config.BUCKETS,
      adminToken: config.ADMIN_TOKEN,
      region: config.REGION,
      lockAnswer: config.LOCK_ANSWER,
      clockScale: config.CLOCK_SCALE,
    }).server,
);
