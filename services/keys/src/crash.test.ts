/** @processes */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { MintedApiKey } from '@drydock/contracts/keys/api-keys';
import { signRequestToken, tokenKey } from '@drydock/service/access';
import { timeoutScale } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, keys, startKeys } from '../test/keys-api';

const faults = createFaultTokens();
const children: ChildProcess[] = [];
let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(async () => {
  for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  faults.remove();
  await api.close();
});

/** Starts the deployed server from dist, on the test's database. */
async function startProcess(): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ['--enable-source-maps', path.join(keys.dir, 'dist/server.js')], {
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: api.postgres.url,
      SERVICE_SECRET: api.secrets.service,
      INTERNAL_TOKEN_SECRET: api.secrets.token,
      WEBHOOK_SECRET: api.secrets.webhook,
      DRYDOCK_FAULTS: faults.folder,
      ...timeoutScale(),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, url } = JSON.parse(line) as { msg: string; url: string };
    if (msg !== 'listening') continue;
    child.stdout.resume();
    return { child, url };
  }
  throw new Error('the server ended before it listened');
}

async function mintAt(url: string, idempotencyKey: string, body: object): Promise<Response> {
  const bytes = Buffer.from(JSON.stringify(body));
  const bound = { requestId: uuidv7(), method: 'POST', path: '/v1/api-keys', body: bytes, idempotencyKey };
  const token = signRequestToken(tokenKey(api.secrets.token), 'keys', root.caller, bound);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'idempotency-key': idempotencyKey,
  };
  return fetch(new URL('/v1/api-keys', url), { method: 'POST', headers, body: bytes });
}

test.each(['accept.before_commit', 'accept.after_commit'])(
  'killed at %s, the retry answers with the one key there is',
  async (point) => {
    const body = { name: point, scopes: ['sites.view'] };
    const first = await startProcess();
    faults.arm(point, 'kill');
    await expect(mintAt(first.url, point, body)).rejects.toThrow('fetch failed');
    if (first.child.signalCode === null) await once(first.child, 'exit');
    expect(first.child.signalCode).toBe('SIGKILL');
    const keys = () => api.rows('SELECT id FROM api_keys WHERE name = $1', [point]);
    expect(await keys()).toHaveLength(point === 'accept.after_commit' ? 1 : 0);

    // An attempt that was killed before its commit holds its Idempotency-Key until its lease ends, so the test ends the
    // lease.
    await api.rows('UPDATE idempotency_records SET lease_expires_at = now()');
    const second = await startProcess();
    const answers = [await mintAt(second.url, point, body), await mintAt(second.url, point, body)];
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[0]?.headers.get('idempotent-replayed')).toBe(point === 'accept.after_commit' ? 'true' : null);
    expect(texts[1]).toBe(texts[0]);
    expect(await keys()).toHaveLength(1);
    const { token, id } = JSON.parse(texts[0] ?? '') as MintedApiKey;
    expect(await api.verify(token)).toMatchObject({ valid: true, key_id: id });
    second.child.kill('SIGTERM');
    expect(await once(second.child, 'exit')).toEqual([0, null]);
  },
);
