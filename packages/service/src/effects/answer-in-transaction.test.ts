import { randomUUID } from 'node:crypto';
import { uuidv7 } from 'uuidv7';
import { type Fixture, startFixture } from '../../test/fixture';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
  await fixture.db.pool.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$`,
  );
});
afterAll(() => fixture.close());

/** Makes every commit fail, although every statement of the transaction succeeds. */
async function whileCommitsFail<T>(work: () => Promise<T>): Promise<T> {
  await fixture.db.pool.query(
    'CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON things DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()',
  );
  try {
    return await work();
  } finally {
    await fixture.db.pool.query('DROP TRIGGER refuse ON things');
  }
}

test.each([
  ['an answer', '/v1/things', 201],
  ['an effect whose outcome is awaited', `/v1/things/${uuidv7()}/poke`, 200],
])(
  '%s is remembered in the transaction of the effect: a commit that fails leaves neither',
  async (_what, path, status) => {
    const idempotencyKey = randomUUID();
    const body = path.endsWith('/poke') ? {} : { body: { name: 'kept with its answer' } };
    const ask = () => fixture.call({ method: 'POST', path, idempotencyKey, ...body });
    const before = await fixture.rows();
    expect((await whileCommitsFail(ask)).status).toBe(500);
    expect(await fixture.rows()).toBe(before);
    const again = await ask();
    expect([again.status, again.headers['idempotent-replayed'], await fixture.rows()]).toEqual([
      status,
      undefined,
      before + 1,
    ]);
  },
);
