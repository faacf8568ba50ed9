import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { closeServer, listen } from '@drydock/service/http';
import { emulatorAdmin } from '../admin-client';
import { createVendorEmulator } from './vendor-emulator';

const stateDir = mkdtempSync(path.join(tmpdir(), 'drydock-vendor-'));
let server: Server;
let url = '';

const start = async (): Promise<void> => {
  const options = {
    stateDir,
    keys: new Map([['live', 'live-key']]),
    adminToken: 'admin',
    clockScale: 0,
    jobSeconds: 20,
  };
  server = createVendorEmulator(options);
  ({ url } = await listen(server, 0));
};
const stop = async (): Promise<void> => {
  server.closeAllConnections();
  await closeServer(server);
};
beforeAll(start);
afterAll(async () => {
  await stop();
  rmSync(stateDir, { recursive: true, force: true });
});

const ask = async (
  method: string,
  target: string,
  body?: object,
  key = 'live-key',
): Promise<{ status: number; json: unknown }> => {
  const response = await fetch(url + target, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: await response.json() };
};
const admin = () => emulatorAdmin(url, 'admin');
const content = (text: string) => ({
  web: { 'index.html': text },
  databases: { shop: { 'a.json': text } },
  mailboxes: { info: { 'cur/1': text } },
});

it('keeps packages, points and running jobs over a restart, and ends each job with its effect', async () => {
  const made = await ask('POST', '/reseller/*/addWeb', { type: 'linux', domain_name: 'a.example.com' });
  const { result: id } = made.json as { result: number };
  await admin().call('PUT', `packages/${id}/content`, content('old'));
  await admin().call('POST', `packages/${id}/points`);
  await admin().call('PUT', `packages/${id}/content`, content('new'));
  const timeline = `/package/${id}/web/timelineBackup`;
  const { web } = (await ask('GET', timeline)).json as { web: { snapshots: [{ restoreAsOf: number }] } };
  const order = { action: 'restore', restoreAsOf: web.snapshots[0].restoreAsOf, restorePath: '/' };
  expect(await ask('POST', `${timeline}/web/restoreSnapshot`, order)).toMatchObject({
    status: 202,
    json: { result: expect.any(String) },
  });
  expect((await ask('POST', `${timeline}/web/restoreSnapshot`, order)).status).toBe(409);
  expect((await ask('GET', `${timeline}/web/jobs`)).json).toMatchObject([{ type: 'restore', status: 'running' }]);
  await stop();
  await start();
  expect(await (await fetch(`${url}/preview/${id}/`)).text()).toBe('new');
  await admin().changeClock({ advanceSeconds: 20 });
  expect(await (await fetch(`${url}/preview/${id}/`)).text()).toBe('old');
  expect((await ask('GET', `${timeline}/web/jobs`)).json).toMatchObject([{ status: 'finished' }]);
  expect(await admin().call('GET', `packages/${id}/content`)).toEqual({ ...content('new'), web: content('old').web });
  expect((await admin().readLedger()).map(({ op, detail }) => `${op} ${detail}`)).toEqual([
    'addWeb a.example.com',
    expect.stringMatching(/^restore web {2}as of \d+$/),
  ]);
  // The content is in plain files.
  const live = path.join(stateDir, 'packages', String(id), 'live');
  expect(readFileSync(path.join(live, 'web/index.html'), 'utf8')).toBe('old');
  expect(readdirSync(path.join(live, 'mailboxes/info/cur'))).toEqual(['1']);
});

it('answers 401 without a key, and 404 for a missing package', async () => {
  expect((await ask('GET', '/package', undefined, 'wrong')).status).toBe(401);
  expect((await ask('GET', '/emulator/packages')).status).toBe(401);
  expect((await ask('GET', '/package/1/web/timelineBackup')).status).toBe(404);
});

it('notes for each call the status that was sent, also after a fault, and 0 for a call without an answer', async () => {
  const faults = [
    { answer: { kind: 'as_usual' }, delayMs: 1 },
    { answer: { kind: 'edited', set: { more: 1 } } },
    { answer: { kind: 'drip', intervalMs: 0 }, isCarriedOut: true },
    { answer: { kind: 'truncated', bytes: 1 }, isCarriedOut: true },
    { answer: { kind: 'endless', bytes: 1 }, isCarriedOut: true },
    { answer: { kind: 'fixed', status: 418 } },
    { answer: { kind: 'reset' } },
  ] as const;
  for (const fault of faults) await admin().orderFault({ path: '^/package/999/', ...fault });
  const before = (await admin().readCalls()).length;
  for (const _fault of faults)
    await fetch(`${url}/package/999/web/timelineBackup`, { headers: { authorization: 'Bearer live-key' } })
      .then((response) => response.text())
      .catch(() => undefined);
  const statuses = (await admin().readCalls()).slice(before).map(({ status }) => status);
  expect(statuses).toEqual([404, 404, 404, 404, 200, 418, 0]);
});

it('a file name never leads out of its package', async () => {
  const made = await ask('POST', '/reseller/*/addWeb', { type: 'linux', domain_name: 'b.example.com' });
  const { result: id } = made.json as { result: number };
  const wanted = { ...content('x'), web: { '../../../escaped': 'x' } };
  await expect(admin().call('PUT', `packages/${id}/content`, wanted)).rejects.toThrow('422');
  expect(readdirSync(stateDir)).not.toContain('escaped');
});
