import { runStandIn } from '../protocol/run-stand-in';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { readProxmoxStandInConfig } from './config';
import { createProxmoxStandIn } from './proxmox-stand-in';
import { fasterTasks } from './task-seconds';

runStandIn(readProxmoxStandInConfig, (config) =>
  createProxmoxStandIn({
    stateDir: config.STATE_DIR,
    tokens: parseTokens(config.API_TOKENS),
    readerTokens: parseOptionalTokens(config.API_READER_TOKENS),
    adminToken: config.ADMIN_TOKEN,
    clockScale: config.CLOCK_SCALE,
    taskSeconds: fasterTasks(config.TASK_SPEED),
  }),
);
