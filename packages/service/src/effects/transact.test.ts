import { startTestDatabase, type TestDatabase } from '../../test/postgres';
import { problemOfError } from '../http/answer';
import { transact } from './perform';

let db: TestDatabase;
beforeAll(async () => {
  db = await startTestDatabase(
    'CREATE TABLE counters (id int PRIMARY KEY, value int NOT NULL); INSERT INTO counters VALUES (1, 0), (2, 0)',
  );
});
afterAll(() => db.close());

test('two transactions that deadlock both commit', async () => {
  let tries = 0;
  let met = 0;
  const cross = (first: number, second: number) =>
    transact(db.database, async (tx) => {
      tries += 1;
      await tx.query('UPDATE counters SET value = value + 1 WHERE id = $1', [first]);
      met += 1;
      // In its first try, each transaction waits until both have locked their first row, so that the two deadlock.
      while (met < 2) await new Promise((resolve) => setImmediate(resolve));
      await tx.query('UPDATE counters SET value = value + 1 WHERE id = $1', [second]);
    });
  await Promise.all([cross(1, 2), cross(2, 1)]);
  expect((await db.pool.query('SELECT value FROM counters ORDER BY id')).rows).toEqual([{ value: 2 }, { value: 2 }]);
  expect(tries).toBe(3);
});

test('a transaction with serialization failures is tried three times in all, and is then a 503', async () => {
  let tries = 0;
  const failing = transact(db.database, async (tx) => {
    tries += 1;
    await tx.query(`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$`);
  });
  const problem = problemOfError(await failing.catch((error: unknown) => error));
  expect([tries, problem.code, problem.details.extra]).toEqual([
    3,
    'dependency_unavailable',
    { dependency: 'database' },
  ]);
});

test('a database that accepts no writes, such as a standby, is a 503', async () => {
  const writing = transact(db.database, async (tx) => {
    await tx.query('SET TRANSACTION READ ONLY');
    await tx.query('UPDATE counters SET value = 0');
  });
  const problem = problemOfError(await writing.catch((error: unknown) => error));
  expect([problem.code, problem.details.extra]).toEqual(['dependency_unavailable', { dependency: 'database' }]);
});

test('a transaction that fails with a bug is not tried again', async () => {
  let tries = 0;
  const once = transact(db.database, async () => {
    tries += 1;
    throw new Error('a bug');
  });
  await expect(once).rejects.toThrow('a bug');
  expect(tries).toBe(1);
});
