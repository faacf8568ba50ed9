/** @processes */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { permissions } from '@drydock/contracts/platform/permissions';
import { timeoutScale } from '@drydock/service/testing/service-api';
import { type KeysApi, keys, startKeys } from '../test/keys-api';

const run = promisify(execFile);

let api: KeysApi;
beforeAll(async () => {
  api = await startKeys();
});
afterAll(() => api.close());

/** Runs the deployed command from dist. */
async function bootstrap(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = {
    PATH: process.env['PATH'],
    ...timeoutScale(),
    DATABASE_URL: api.postgres.url,
    SERVICE_SECRET: api.secrets.service,
  };
  try {
    return { code: 0, ...(await run(process.execPath, [path.join(keys.dir, 'dist/bootstrap.js'), ...args], { env })) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

const counts = () =>
  api.rows(
    'SELECT (SELECT count(*) FROM orgs) AS orgs, (SELECT count(*) FROM api_keys) AS keys, (SELECT count(*) FROM audit_log) AS entries',
  );

test('the command makes an organisation with every permission, and its first key, once', async () => {
  const first = await bootstrap('--json', '--name', 'Acme');
  expect([first.code, first.stderr]).toEqual([0, '']);
  const { org_id, key_id, token } = JSON.parse(first.stdout) as Record<'org_id' | 'key_id' | 'token', string>;
  const caller = await api.callerOf(token);
  expect(caller).toEqual({ orgId: org_id, keyId: key_id, mode: 'live', scopes: permissions });
  expect((await api.mint(caller, { scopes: ['sites.view'] })).caller.scopes).toEqual(['sites.view']);
  const before = await counts();
  const second = await bootstrap('--json', '--name', 'Acme');
  expect([second.code, second.stdout]).toEqual([3, '']);
  expect(JSON.parse(second.stderr)).toEqual({ error: expect.stringContaining('"Acme" already') });
  expect(await counts()).toEqual(before);
  const rescue = JSON.parse((await bootstrap('--json', '--name', 'Acme', '--new-key')).stdout) as {
    org_id: string;
    token: string;
  };
  expect([rescue.org_id, (await api.callerOf(rescue.token)).scopes]).toEqual([org_id, permissions]);
});

test('five commands at once make one organisation', async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => api.bootstrap({ name: 'Race' })));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(String(outcome.reason)).toContain('it is there already');
  expect(await api.rows(`SELECT FROM orgs WHERE name = 'Race'`)).toHaveLength(1);
});

test('without --json people get lines of text; an empty name and an unknown option are refused', async () => {
  const { code, stdout } = await bootstrap('--name', 'People');
  expect([code, /^token +dd_live_\w+$/m.test(stdout)]).toEqual([0, true]);
  expect((await bootstrap('--name', '')).code).toBe(1);
  expect((await bootstrap('--nmae', 'x')).code).toBe(1);
});
