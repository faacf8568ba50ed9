import { runEmulator } from '../protocol/emulator-server';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { readHetznerEmulatorConfig } from './config';
import { createHetznerEmulator } from './hetzner-emulator';
import { fasterActions } from './hetzner-world';

runEmulator(readHetznerEmulatorConfig, (config) =>
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
