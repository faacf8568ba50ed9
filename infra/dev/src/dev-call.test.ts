/** @processes */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findFreePort, proveProcess } from '@drydock/process';
import { inRepo } from './dev-config';
import type { DevEnvironment } from './dev-environment';

test.each([
  ['keys does not mount helloSite', 'agency does not answer: keys does not mount helloSite\n'],
  [null, 'it may still be starting\n'],
])('a service that does not answer is told with the reason (%s)', async (down, told) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-dev-call-'));
  const owner = proveProcess(process.pid) ?? { pid: process.pid, startedTicks: '' };
  const running: DevEnvironment = {
    owner,
    port: await findFreePort(),
    environment: { INTERNAL_TOKEN_SECRET: 'ab'.repeat(32) },
    down,
  };
  fs.mkdirSync(path.join(folder, 'dev/agency'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'dev/agency/environment.json'), JSON.stringify(running));
  const env = { ...process.env, DRYDOCK_DATA_DIR: folder };
  const asked = spawnSync(process.execPath, [inRepo('infra/dev/dist/dev-call.js'), 'GET', '/v1/agency/boards'], {
    env,
    encoding: 'utf8',
  });
  fs.rmSync(folder, { recursive: true, force: true });
  expect([asked.status, asked.stderr]).toEqual([1, expect.stringContaining(told)]);
});
