import { runStandIn } from '../protocol/run-stand-in';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { readVendorStandInConfig } from './config';
import { createVendorStandIn } from './vendor-stand-in';

runStandIn(readVendorStandInConfig, (config) =>
  createVendorStandIn({
    stateDir: config.STATE_DIR,
    keys: parseTokens(config.ACCOUNT_KEYS),
    readerKeys: parseOptionalTokens(config.ACCOUNT_READER_KEYS),
    adminToken: config.ADMIN_TOKEN,
    clockScale: config.CLOCK_SCALE,
    jobSeconds: config.JOB_SECONDS,
  }),
);
