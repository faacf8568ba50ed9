import { auditDeliverySchema } from '@drydock/contracts/keys/events';
import { newSecret } from '@drydock/testing/secret';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { startTestDatabase, type TestDatabase } from '../../test/postgres';
import { signInternalToken, tokenKey, tokenKeys } from '../access/internal-token';
import { internalRoute } from '../http/route';
import { createService } from '../http/service';
import { createLog } from '../telemetry/log';
import { type AuditRecord, audit, auditOutbox } from './audit';
import { createOutboxDelivery } from './outbox-delivery';

const secret = newSecret();
const log = createLog({ service: 'test', level: 'silent' });
let db: TestDatabase;
beforeAll(async () => {
  db = await startTestDatabase();
});
afterAll(() => db.close());
beforeEach(() => db.pool.query('TRUNCATE audit_outbox'));

const record = (action: string): AuditRecord => ({
  orgId: uuidv7(),
  mode: 'live',
  actorKeyId: null,
  action,
  target: '/v1/x',
  workflowId: uuidv7(),
});
const left = async () => Number((await db.pool.query('SELECT count(*) FROM audit_outbox')).rows[0].count);

/**
 * A keys service for the test: a real server with its own handler. It answers the first `refusals` deliveries with an
 * error, after it has taken their entries.
 */
async function startKeys(refusals = 0, trusted = secret) {
  const taken: string[] = [];
  let refusalsLeft = refusals;
  const service = createService({
    name: 'keys',
    routes: [],
    internalRoutes: [
      internalRoute({
        method: 'POST',
        path: auditOutbox.path,
        issuers: { hosting: tokenKeys(trusted) },
        body: auditDeliverySchema,
        handle: async ({ body, issuer }) => {
          if (body.service !== issuer) return { status: 403 };
          taken.push(...body.entries.map(({ action }) => action));
          // The entries are stored but the answer is lost, so the delivery must send them again.
          if (refusalsLeft-- > 0) throw new Error('lost');
          return { status: 204 };
        },
      }),
    ],
    database: db.database,
    tokenSecret: newSecret(),
    log,
    ready: {},
  });
  const sizes: number[] = [];
  service.server.on('request', ({ headers }) => sizes.push(Number(headers['content-length'])));
  const { url } = await service.listen(0);
  return { url, taken, sizes, asked: () => sizes.length, close: () => service.close() };
}

const deliver = (keysUrl: string, told = log) =>
  createOutboxDelivery({
    outbox: auditOutbox,
    database: db.database,
    keysUrl,
    secret,
    service: 'hosting',
    log: told,
    everyMs: 20,
    backoffMsMax: 100,
  });

test('entries arrive in order, in batches, and leave the outbox', async () => {
  for (let index = 0; index < 250; index += 1) await audit(db.database.sql(), record(String(index)));
  const keys = await startKeys();
  const delivery = deliver(keys.url);
  delivery.start();
  await until(async () => (await left()) === 0);
  expect(keys.taken).toEqual(Array.from({ length: 250 }, (_, index) => String(index)));
  await delivery.stop();
  await keys.close();
});

const letters = (count: number) => 'x'.repeat(count);

test('large entries leave in batches that a keys service of the previous release takes, which are at most 100 KiB', async () => {
  const sent = Array.from({ length: 120 }, (_, index) => `${index} ${letters(index === 70 ? 90_000 : 3_000)}`);
  for (const action of sent) await audit(db.database.sql(), record(action));
  const keys = await startKeys();
  const delivery = deliver(keys.url);
  delivery.start();
  await until(async () => (await left()) === 0);
  expect(keys.taken).toEqual(sent);
  expect(Math.max(...keys.sizes)).toBeLessThanOrEqual(100 * 1024);
  await delivery.stop();
  await keys.close();
});

test('a batch of a service of the previous release is taken, although a hundred entries are larger than 100 KiB', async () => {
  const keys = await startKeys();
  const entries = Array.from({ length: 100 }, (_, index) => ({
    ...{ id: uuidv7(), org_id: uuidv7(), mode: 'live', actor_key_id: null, action: String(index) },
    ...{ target: letters(5_000), workflow_id: null, at: new Date().toISOString() },
  }));
  const body = Buffer.from(JSON.stringify({ service: 'hosting', entries }));
  const bound = { requestId: uuidv7(), method: 'POST', path: auditOutbox.path, body };
  const token = signInternalToken(tokenKey(secret), { issuer: 'hosting', audience: 'keys' }, bound);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const { status } = await fetch(new URL(auditOutbox.path, keys.url), { method: 'POST', headers, body });
  expect([status, keys.taken.length]).toEqual([204, 100]);
  await keys.close();
});

test('an entry that keys refuses holds only the entries after it, and the log names its row', async () => {
  for (let index = 0; index < 60; index += 1)
    await audit(db.database.sql(), { ...record(String(index)), ...(index === 40 && { mode: 'unheard of' as 'live' }) });
  const keys = await startKeys();
  const logged: string[] = [];
  const destination = { write: (line: string) => logged.push(line) };
  const delivery = deliver(keys.url, createLog({ service: 'test', destination }));
  const { rows } = await db.pool.query('SELECT seq FROM audit_outbox ORDER BY seq OFFSET 40 LIMIT 1');
  delivery.start();
  await until(() => logged.some((line) => line.includes(`422 to 1 audit entries, from seq ${rows[0].seq} on`)));
  expect([keys.taken.at(-1), await left()]).toEqual(['39', 20]);
  await db.pool.query('DELETE FROM audit_outbox WHERE seq = $1', [rows[0].seq]);
  await until(async () => (await left()) === 0);
  expect(keys.taken.slice(40)).toEqual(Array.from({ length: 19 }, (_, index) => String(index + 41)));
  await delivery.stop();
  await keys.close();
});

test('an entry of a transaction that was rolled back is never delivered', async () => {
  const failing = db.database.transaction(async (tx) => {
    await audit(db.database.sql(tx), record('rolled back'));
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await left()).toBe(0);
});

test('an entry that keys did not confirm is sent again, and an entry waits while keys cannot be reached', async () => {
  await audit(db.database.sql(), record('once'));
  const keys = await startKeys(2);
  const delivery = deliver(keys.url);
  delivery.start();
  await until(async () => (await left()) === 0);
  expect(keys.taken).toEqual(['once', 'once', 'once']);
  await keys.close();
  await audit(db.database.sql(), record('later'));
  delivery.ring();
  await delivery.stop();
  expect(await left()).toBe(1);
});

test('a pause never uses AbortSignal.any, which would leak into a signal that lives as long as the process', async () => {
  const combined = jest.spyOn(AbortSignal, 'any');
  const keys = await startKeys();
  const delivery = deliver(keys.url);
  delivery.start();
  await audit(db.database.sql(), record('rung'));
  delivery.ring();
  await until(() => keys.taken.length === 1);
  await delivery.stop();
  await keys.close();
  expect(combined).not.toHaveBeenCalled();
});

test('keys refuses a delivery that another secret has signed, and the entries stay', async () => {
  await audit(db.database.sql(), record('mine'));
  const keys = await startKeys(0, newSecret());
  const delivery = deliver(keys.url);
  delivery.start();
  delivery.ring();
  await until(() => keys.asked() > 0);
  await delivery.stop();
  expect([keys.taken, await left()]).toEqual([[], 1]);
  await keys.close();
});
