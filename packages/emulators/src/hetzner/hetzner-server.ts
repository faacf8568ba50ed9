import { runStandIn } from '../protocol/run-stand-in';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { fasterActions } from './action-seconds';
import { readHetznerStandInConfig } from './config';
import { createHetznerStandIn } from './hetzner-stand-in';

runStandIn(readHetznerStandInConfig, (config) =>
  createHetznerStandIn({
    stateDir: config.STATE_DIR,
    tokens: parseTokens(config.PROJECT_TOKENS),
    readerTokens: parseOptionalTokens(config.PROJECT_READER_TOKENS),
    adminToken: config.ADMIN_TOKEN,
    clockScale: config.CLOCK_SCALE,
    callsPerHour: config.CALLS_PER_HOUR,
    actionSeconds: fasterActions(config.ACTION_SPEED),
  }),
);
