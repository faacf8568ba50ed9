import { randomUUID } from 'node:crypto';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { caller, type Fixture, startFixture } from '../../test/fixture';
import { purgeIdempotency } from './idempotency';

let fixture: Fixture;
beforeAll(async () => {
  // The leases are so long that none ends during a test. A test ends a lease by SQL.
  fixture = await startFixture({ idempotency: { leaseSeconds: 600, outcomeLeaseSeconds: 600, waitMs: 60_000 } });
});
afterAll(() => fixture.close());
beforeEach(() => {
  fixture.levers.hold = async () => undefined;
  fixture.levers.outcome = async () => 'done';
});

const make = (body: object, idempotencyKey?: string, more: { caller?: typeof caller } = {}) =>
  fixture.call({
    method: 'POST',
    path: '/v1/things',
    body,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...more,
  });

/** Holds the next handler. `held` resolves when the handler runs, and `release` lets it continue. */
function holdOnce(levers = fixture.levers) {
  let release = (): void => undefined;
  let entered = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const held = new Promise<void>((resolve) => {
    entered = resolve;
  });
  let first = true;
  levers.hold = async () => {
    if (!first) return;
    first = false;
    entered();
    await gate;
  };
  return { held, release };
}

test('a repeat with the same key gets the same bytes and has no second effect', async () => {
  const key = randomUUID();
  const before = await fixture.rows();
  const first = await make({ name: 'one', tags: ['a'] }, key);
  const second = await make({ tags: ['a'], name: 'one' }, key);
  expect(first.status).toBe(201);
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  expect([second.status, second.text, second.headers['location']]).toEqual([
    201,
    first.text,
    first.headers['location'],
  ]);
  expect(second.headers['content-type']).toBe(first.headers['content-type']);
  expect(second.headers['idempotent-replayed']).toBe('true');
  expect(await fixture.rows()).toBe(before + 1);
});

test('the same key for the same id in upper case is a repeat', async () => {
  const [key, id] = [randomUUID(), uuidv7()];
  const rename = (written: string) =>
    fixture.call({ method: 'POST', path: `/v1/things/${written}/name`, body: { name: 'x' }, idempotencyKey: key });
  const before = await fixture.rows();
  const first = await rename(id);
  const second = await rename(id.toUpperCase());
  expect([second.status, second.text, second.headers['idempotent-replayed']]).toEqual([200, first.text, 'true']);
  expect(await fixture.rows()).toBe(before + 1);
});

test('bodies are compared as they were sent: a body that spells out a default is another body', async () => {
  const key = randomUUID();
  const check = (body: object) =>
    fixture.call({ method: 'POST', path: `/v1/things/${uuidv7()}/check`, body, idempotencyKey: key });
  const path = `/v1/things/${uuidv7()}/check`;
  const at = (body: object) => fixture.call({ method: 'POST', path, body, idempotencyKey: key });
  expect((await at({})).status).toBe(200);
  expect((await at({ deep: false })).json).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
  expect((await check({ deep: false })).status).toBe(200);
});

test('a POST that changes nothing is replayed too, and refuses a malformed key', async () => {
  const path = `/v1/things/${uuidv7()}/check`;
  const check = (idempotencyKey: string) => fixture.call({ method: 'POST', path, body: {}, idempotencyKey });
  const key = randomUUID();
  const first = await check(key);
  const second = await check(key);
  expect([second.status, second.text, second.headers['idempotent-replayed']]).toEqual([200, first.text, 'true']);
  expect((await check('not a key')).json).toMatchObject({ status: 422, code: 'idempotency_key_invalid' });
});

test('an answer, and its replay, wait for beforeAnswer', async () => {
  let waits = 0;
  fixture.levers.beforeAnswer = async () => {
    waits += 1;
  };
  const call = {
    method: 'POST',
    path: `/v1/things/${uuidv7()}/name`,
    body: { name: 'x' },
    idempotencyKey: randomUUID(),
  };
  expect((await fixture.call(call)).status).toBe(200);
  expect((await fixture.call(call)).headers['idempotent-replayed']).toBe('true');
  expect(waits).toBe(2);
});

test('fifty simultaneous requests with one key make one row and get one answer', async () => {
  const key = randomUUID();
  const before = await fixture.rows();
  const answers = await Promise.all(Array.from({ length: 50 }, () => make({ name: 'fifty' }, key)));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.every(({ status }) => status === 201)).toBe(true);
  expect(await fixture.rows()).toBe(before + 1);
});

test('an Idempotency-Key is refused with another body, and is unused on another path and for another API key', async () => {
  const key = randomUUID();
  const first = await make({ name: 'one' }, key);
  const other = await make({ name: 'two' }, key);
  expect([other.status, other.json]).toEqual([422, expect.objectContaining({ code: 'idempotency_key_reused' })]);
  const elsewhere = await fixture.call({
    method: 'POST',
    path: `/v1/things/${uuidv7()}/name`,
    body: { name: 'one' },
    idempotencyKey: key,
  });
  expect([elsewhere.status, elsewhere.headers['idempotent-replayed']]).toEqual([200, undefined]);
  const colleague = await make({ name: 'two' }, key, { caller: { ...caller, keyId: uuidv7() } });
  expect(colleague.status).toBe(201);
  expect(colleague.text).not.toBe(first.text);
});

test('a request without a key sends only its transaction; a key adds a claim before it and the answer in it', async () => {
  const { statements } = fixture.db;
  statements.length = 0;
  await make({ name: 'plain' });
  expect(statements).toEqual(['BEGIN']);
  statements.length = 0;
  await make({ name: 'keyed' }, randomUUID());
  expect(statements.map((text) => text.trim().split(/\s/)[0])).toEqual(['WITH', 'BEGIN', 'UPDATE']);
});

test.each([
  ['', 422],
  ['a', 201],
  ['k'.repeat(255), 201],
  ['k'.repeat(256), 422],
  ['with space', 422],
  ['tab\there', 422],
])('key %j is answered %i', async (key, status) => {
  const answer = await fixture.call({ method: 'POST', path: '/v1/things', body: { name: 'x' }, idempotencyKey: key });
  expect([answer.status, answer.text.includes('idempotency_key_invalid')]).toEqual([status, status === 422]);
});

test('a final refusal is stored and replayed with its first request id; a transient one is executed again', async () => {
  const [final, transient] = [randomUUID(), randomUUID()];
  const first = await make({ name: 'x', wish: 'refuse' }, final);
  const again = await make({ name: 'x', wish: 'refuse' }, final);
  expect([first.status, again.text, again.headers['idempotent-replayed']]).toEqual([422, first.text, 'true']);
  fixture.levers.actsRun = 0;
  for (let time = 1; time <= 2; time += 1) {
    const answer = await make({ name: 'x', wish: 'refuse_for_now' }, transient);
    expect([answer.status, answer.headers['idempotent-replayed'], fixture.levers.actsRun]).toEqual([
      422,
      undefined,
      time,
    ]);
  }
});

test('an internal error frees the key and leaves no row', async () => {
  const key = randomUUID();
  const before = await fixture.rows();
  const failed = await make({ name: 'x', wish: 'fail' }, key);
  expect([failed.status, failed.text.includes('secret detail')]).toEqual([500, false]);
  expect(await fixture.rows()).toBe(before);
  expect((await make({ name: 'other body, same key' }, key)).status).toBe(201);
});

test('syntax errors and missing permissions are neither stored nor replayed; permission is checked again on a replay', async () => {
  const key = randomUUID();
  expect((await make({ name: 5 }, key)).status).toBe(422);
  expect((await make({ name: 'good' }, key)).status).toBe(201);
  const weak = await make({ name: 'good' }, key, { caller: { ...caller, scopes: [] } });
  expect([weak.status, weak.json]).toEqual([403, expect.objectContaining({ code: 'permission_denied' })]);
});

test('a request that comes while the first is running waits for its answer', async () => {
  const key = randomUUID();
  const { held, release } = holdOnce();
  const first = make({ name: 'slow' }, key);
  await held;
  const claimsSeen = (): number =>
    fixture.db.statements.filter((text) => text.includes('INSERT INTO idempotency_records')).length;
  fixture.db.statements.length = 0;
  const second = make({ name: 'slow' }, key);
  await until(async () => claimsSeen() > 1);
  release();
  const [a, b] = await Promise.all([first, second]);
  expect([b.text, b.headers['idempotent-replayed']]).toEqual([a.text, 'true']);
});

test('a repeat that has waited too long for the first request is 409 if the contract has it, otherwise 503', async () => {
  const hasty = await startFixture({ idempotency: { leaseSeconds: 600, waitMs: 50 } });
  for (const [path, status, code] of [
    ['/v1/things', 503, 'dependency_unavailable'],
    [`/v1/things/${uuidv7()}/name`, 409, 'idempotency_in_flight'],
  ] as const) {
    const key = randomUUID();
    const { held, release } = holdOnce(hasty.levers);
    const ask = () => hasty.call({ method: 'POST', path, body: { name: 'slow' }, idempotencyKey: key });
    const first = ask();
    await held;
    const second = await ask();
    expect([second.status, second.headers['retry-after'], second.json]).toEqual([
      status,
      '1',
      expect.objectContaining({ code }),
    ]);
    release();
    await first;
  }
  await hasty.close();
});

test('a claim ends with its lease; an attempt that was only slow is refused at its commit and leaves no row', async () => {
  const key = randomUUID();
  const before = await fixture.rows();
  const { held, release } = holdOnce();
  const slow = make({ name: 'twice' }, key);
  await held;
  await fixture.db.pool.query(`UPDATE idempotency_records SET lease_expires_at = now() WHERE status IS NULL`);
  const second = await make({ name: 'twice' }, key);
  expect(second.status).toBe(201);
  release();
  expect((await slow).status).toBe(503);
  expect(await fixture.rows()).toBe(before + 1);
  expect((await make({ name: 'twice' }, key)).text).toBe(second.text);
});

test('a secret is in the answer and its replay, and in no row', async () => {
  const key = `raw-${randomUUID()}`;
  const ask = () => fixture.call({ method: 'POST', path: '/v1/secrets', body: {}, idempotencyKey: key });
  const [first, second] = [await ask(), await ask()];
  expect([second.status, second.text]).toEqual([201, first.text]);
  const { rows } = await fixture.db.pool.query('SELECT row_to_json(r)::text AS row FROM idempotency_records r');
  const dump = rows.map(({ row }) => row).join('\n');
  expect(dump).toContain('"after');
  expect(dump).not.toContain('made of');
  expect(dump).not.toContain(key);
});

test('after an unknown outcome the same key waits for the accepted effect, and after a refusal it starts anew', async () => {
  const [unknown, refused] = [randomUUID(), randomUUID()];
  const poke = (idempotencyKey: string) =>
    fixture.call({ method: 'POST', path: `/v1/things/${thing}/poke`, idempotencyKey });
  const thing = uuidv7();
  const before = await fixture.rows();
  fixture.levers.outcome = async () => 'unknown';
  expect((await poke(unknown)).status).toBe(503);
  fixture.levers.outcome = async () => 'done';
  const settled = await poke(unknown);
  expect([settled.status, await fixture.rows()]).toEqual([200, before + 1]);
  expect((await poke(unknown)).headers['idempotent-replayed']).toBe('true');
  fixture.levers.outcome = async () => 'refused';
  expect((await poke(refused)).status).toBe(503);
  fixture.levers.outcome = async () => 'done';
  expect([(await poke(refused)).status, await fixture.rows()]).toEqual([200, before + 3]);
});

test('an accepted effect whose outcome could not be read is not started again: the same key gets its outcome', async () => {
  const key = randomUUID();
  const poke = () => fixture.call({ method: 'POST', path: `/v1/things/${thing}/poke`, idempotencyKey: key });
  const thing = uuidv7();
  const before = await fixture.rows();
  fixture.levers.outcome = async () => {
    throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
  };
  const lost = await poke();
  expect([lost.status, lost.json]).toEqual([
    503,
    expect.objectContaining({ detail: expect.stringContaining('It was accepted') }),
  ]);
  fixture.levers.outcome = async () => {
    throw new Error('a bug of ours');
  };
  expect((await poke()).status).toBe(500);
  fixture.levers.outcome = async () => 'done';
  expect([(await poke()).status, await fixture.rows()]).toEqual([200, before + 1]);
});

test('an accepted effect is not started again if the connection was lost at its commit', async () => {
  const key = randomUUID();
  const thing = uuidv7();
  const poke = () => fixture.call({ method: 'POST', path: `/v1/things/${thing}/poke`, idempotencyKey: key });
  const before = await fixture.rows();
  fixture.db.loseNextCommit();
  expect((await poke()).status).toBe(503);
  expect([(await poke()).status, await fixture.rows()]).toEqual([200, before + 1]);
});

test('after 24 hours a key is new again, and the purge deletes it', async () => {
  const key = randomUUID();
  const age = () => fixture.db.pool.query(`UPDATE idempotency_records SET created_at = now() - interval '25 hours'`);
  const first = await make({ name: 'old' }, key);
  await age();
  const again = await make({ name: 'another body' }, key);
  expect([again.status, again.headers['idempotent-replayed'], again.text === first.text]).toEqual([
    201,
    undefined,
    false,
  ]);
  await age();
  await purgeIdempotency(fixture.db.database.sql(), 1_000);
  expect(Number((await fixture.db.pool.query('SELECT count(*) FROM idempotency_records')).rows[0].count)).toBe(0);
});

test('work after the commit runs once, and never after a rollback', async () => {
  fixture.levers.committed.length = 0;
  const answer = await make({ name: 'ring' });
  await make({ name: 'ring', wish: 'refuse' });
  expect(fixture.levers.committed.map((id) => `/v1/things/${id}`)).toEqual([answer.headers['location']]);
});
