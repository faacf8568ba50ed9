/**
 * Runs `npm run dev NAME` as a developer would.
 *
 * @tier long
 * @processes
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { readDemo } from './demo/demo-file';
import { inRepo } from './dev-config';

const limitMs = 600_000;
jest.setTimeout(2 * limitMs);

let folder: string;
let developed: ChildProcess;
let said: string;

function develop(...words: string[]): void {
  const env = { ...process.env, DRYDOCK_DATA_DIR: folder, DRYDOCK_DEMO: 'sites' };
  developed = spawn(process.execPath, [inRepo('infra/dev/dist/dev-service.js'), ...words], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  developed.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
}
const hasSaid = async (pattern: RegExp): Promise<string> =>
  (await until(() => pattern.exec(said), { timeoutMs: limitMs, everyMs: 100, what: `${pattern} in ${said}` }))[1] ?? '';

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-dev-service-'));
  fs.chmodSync(folder, 0o755);
  said = '';
});
afterEach(async () => {
  const ended = once(developed, 'close');
  developed.kill('SIGTERM');
  await ended;
  fs.rmSync(folder, { recursive: true, force: true });
});

test.each([['gateway'], ['site-host'], ['database-host']])('%s runs with what it needs, and answers', async (name) => {
  develop(name);
  const url = await hasSaid(new RegExp(`${name} listens on (\\S+);`));
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test('with --seed the demo is there, made by the service that is developed, and with --inspect its debugger and its worker’s listen', async () => {
  develop('hosting', '--seed', '--inspect');
  const gateway = await hasSaid(/The gateway is at (\S+),/);
  const { live_key: key, sites = [] } = readDemo(path.join(folder, 'dev/hosting'));
  const answer = await fetch(`${gateway}/v1/sites`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(sites.map(({ id }) => id)));
  expect(sites.length).toBeGreaterThan(0);
  for (const port of [9229, 9230]) expect(said).toContain(`Debugger listening on ws://127.0.0.1:${port}/`);
});
