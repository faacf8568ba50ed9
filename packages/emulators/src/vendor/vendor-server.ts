import { runEmulator } from '../protocol/emulator-server';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { readVendorEmulatorConfig } from './config';
import { createVendorEmulator } from './vendor-emulator';

runEmulator(readVendorEmulatorConfig, (config) =>
  createVendorEmulator({
    stateDir: config.STATE_DIR,
    keys: parseTokens(config.ACCOUNT_KEYS),
    readerKeys: parseOptionalTokens(config.ACCOUNT_READER_KEYS),
    adminToken: config.ADMIN_TOKEN,
    clockScale: config.CLOCK_SCALE,
    jobSeconds: config.JOB_SECONDS,
  }),
);
