import pg from 'pg';
import { testPostgres } from './postgres';
import { runSql } from './run-sql';

test('two clones of one template do not see each other, and their owner is no superuser', async () => {
  const content = { sql: ['CREATE TABLE seen (n int)'] };
  const [one, two] = await Promise.all([testPostgres(content), testPostgres(content)]);
  await runSql(one.url, 'INSERT INTO seen VALUES (1)');
  expect(await runSql(two.url, 'SELECT n FROM seen')).toEqual([]);
  expect(await runSql(one.url, 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user')).toEqual([
    { rolsuper: false },
  ]);
  expect(await runSql(one.adminUrl, 'SELECT n FROM seen')).toEqual([{ n: 1 }]);
  await Promise.all([one.close(), two.close()]);
  await expect(runSql(one.url, 'SELECT 1')).rejects.toMatchObject({ code: '3D000' });
});

test('a session that is about to end is not ended by force when its database is dropped', async () => {
  const database = await testPostgres();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const last = client.query('SELECT pg_sleep(0.5)').then(() => client.end());
  await database.close();
  await expect(last).resolves.toBeUndefined();
});
