/** @processes */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { Pool } from 'undici';
import { startChildService } from '../../test/child-service';
import { startTestDatabase, type TestDatabase } from '../../test/postgres';
import { createLog } from '../telemetry/log';
import { createLifetime } from './shutdown';

let db: TestDatabase;
let env: Record<string, string>;
beforeAll(async () => {
  db = await startTestDatabase('CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL)');
  env = { DATABASE_URL: db.url, NODE_ENV: 'test' };
});
afterAll(() => db.close());
const rows = async (name: string) =>
  Number((await db.pool.query('SELECT count(*) FROM things WHERE name = $1', [name])).rows[0].count);

test('after SIGTERM the running request is answered, no other is accepted, and the exit code is 0', async () => {
  const service = await startChildService(env);
  const holder = await db.pool.connect();
  await holder.query('SELECT pg_advisory_lock(1)');
  const running = service.post('held');
  await until(
    async () =>
      (await db.pool.query(`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)).rowCount === 1,
  );
  service.child.kill('SIGTERM');
  await until(() => service.lines.some(({ msg }) => msg === 'shutting down'));
  await expect(service.post('late')).rejects.toThrow(/ECONNREFUSED|closed|socket|reset/i);
  await holder.query('SELECT pg_advisory_unlock(1)');
  holder.release();
  const answer = await running;
  expect([answer.status, answer.headers['connection'], await rows('held'), await service.gone]).toEqual([
    201,
    'close',
    1,
    0,
  ]);
  expect(
    service.lines.filter(({ phase }) => phase !== undefined).map(({ phase, outcome }) => [phase, outcome]),
  ).toEqual([
    ['drain', 'closed'],
    ['http', 'closed'],
    ['database', 'closed'],
  ]);
});

test('a draining service is not ready, answers requests on idle connections, and ends once they are closed', async () => {
  const service = await startChildService({ ...env, DRAIN_SECONDS: '300' });
  const kept = new Pool(`http://127.0.0.1:${service.port}`, { connections: 1 });
  const get = async (target: string) => {
    const { statusCode, headers, body } = await kept.request({ method: 'GET', path: target });
    return [statusCode, headers['connection'], await body.json()];
  };
  expect(await get('/readyz')).toEqual([200, 'keep-alive', expect.objectContaining({ status: 'ready' })]);
  const other = new Pool(`http://127.0.0.1:${service.port}`, { connections: 1 });
  await (await other.request({ method: 'GET', path: '/healthz' })).body.dump();
  service.child.kill('SIGTERM');
  await until(() => service.lines.some(({ msg }) => msg === 'shutting down'));
  // The service leaves its connections open. A request would be lost if the service closed the connection while the
  // request is on its way.
  expect(await get('/readyz')).toEqual([503, 'close', expect.objectContaining({ status: 'closing' })]);
  const late = await service.post('late');
  expect([late.status, late.headers['connection'], await rows('late')]).toEqual([201, 'close', 1]);
  expect(service.child.exitCode).toBeNull();
  await other.close();
  expect(await service.gone).toBe(0);
  await kept.close();
});

test('an unhandled rejection is logged and ends the process with 1', async () => {
  const service = await startChildService(env);
  await service.post('crash').catch(() => undefined);
  expect(await service.gone).toBe(1);
  expect(service.lines).toContainEqual(
    expect.objectContaining({
      level: 'fatal',
      msg: 'crash',
      err: expect.objectContaining({ message: 'nobody listens' }),
    }),
  );
});

test.each([
  ['accept.before_commit', 0],
  ['accept.after_commit', 1],
])('after a kill at %s, a retry with the same key makes one row in all', async (point, rowsAfterKill) => {
  const faults = mkdtempSync(path.join(os.tmpdir(), 'drydock-kit-faults-'));
  const [key, name] = [randomUUID(), `killed-${point}`];
  writeFileSync(path.join(faults, `${point}@kill`), '');
  const first = await startChildService({ ...env, DRYDOCK_FAULTS: faults });
  await expect(first.post(name, { idempotencyKey: key })).rejects.toThrow(/ECONNREFUSED|closed|socket|reset/i);
  expect([await first.gone, await rows(name)]).toEqual(['SIGKILL', rowsAfterKill]);
  // The killed attempt owns its Idempotency-Key until its lease ends; the test does not wait for that.
  await db.pool.query('UPDATE idempotency_records SET lease_expires_at = now()');
  const second = await startChildService({ ...env, DRYDOCK_FAULTS: faults });
  const answer = await second.post(name, { idempotencyKey: key });
  expect([answer.status, await rows(name)]).toEqual([201, 1]);
  expect(answer.headers['idempotent-replayed']).toBe(rowsAfterKill === 1 ? 'true' : undefined);
  second.child.kill('SIGTERM');
  expect(await second.gone).toBe(0);
});

test('resources close in reverse order, even if one of them fails or hangs', async () => {
  const closed: string[] = [];
  const lines: string[] = [];
  const lifetime = createLifetime(createLog({ service: 'x', destination: { write: (line) => void lines.push(line) } }));
  lifetime.onClose('first', () => closed.push('first'));
  lifetime.onClose('hangs', () => new Promise(() => undefined), 20);
  lifetime.onClose('fails', () => Promise.reject(new Error('no')));
  lifetime.onClose('last', () => closed.push('last'));
  await Promise.all([lifetime.close(), lifetime.close()]);
  expect(closed).toEqual(['last', 'first']);
  const outcomes = lines.map((line) => JSON.parse(line)).filter(({ outcome }) => outcome !== undefined);
  expect(outcomes.map(({ phase, outcome }) => `${phase} ${outcome}`)).toEqual([
    'last closed',
    'fails failed',
    'hangs late',
    'first closed',
  ]);
});
