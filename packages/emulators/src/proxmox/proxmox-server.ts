import { runEmulator } from '../protocol/emulator-server';
import { parseOptionalTokens, parseTokens } from '../protocol/tokens';
import { readProxmoxEmulatorConfig } from './config';
import { createProxmoxEmulator } from './proxmox-emulator';
import { fasterTasks } from './proxmox-world';

runEmulator(readProxmoxEmulatorConfig, (config) =>
  createProxmoxEmulator({
    stateDir: config.STATE_DIR,
    tokens: parseTokens(config.API_TOKENS),
    readerTokens: parseOptionalTokens(config.API_READER_TOKENS),
    adminToken: config.ADMIN_TOKEN,
    clockScale: config.CLOCK_SCALE,
    taskSeconds: fasterTasks(config.TASK_SPEED),
  }),
);
