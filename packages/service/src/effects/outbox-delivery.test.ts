import { auditDeliverySchema } from '@drydock/contracts/keys/events';
import { newSecret } from '@drydock/testing/secret';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { startTestDatabase, type TestDatabase } from '../../test/postgres';
import { tokenKeys } from '../access/internal-token';
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
  let asked = 0;
  service.server.on('request', () => {
    asked += 1;
  });
  const { url } = await service.listen(0);
  return { url, taken, asked: () => asked, close: () => service.close() };
}

const deliver = (keysUrl: string) =>
  createOutboxDelivery({
    outbox: auditOutbox,
    database: db.database,
    keysUrl,
    secret,
    service: 'hosting',
    log,
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
