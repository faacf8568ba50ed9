import pg from 'pg';
import { testPostgres } from './postgres';

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test('two clones of one template do not see each other, and their owner is no superuser', async () => {
  const content = { sql: ['CREATE TABLE seen (n int)'] };
  const [one, two] = await Promise.all([testPostgres(content), testPostgres(content)]);
  await query(one.url, 'INSERT INTO seen VALUES (1)');
  expect(await query(two.url, 'SELECT n FROM seen')).toEqual([]);
  expect(await query(one.url, 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user')).toEqual([{ rolsuper: false }]);
  expect(await query(one.adminUrl, 'SELECT n FROM seen')).toEqual([{ n: 1 }]);
  await Promise.all([one.close(), two.close()]);
  await expect(query(one.url, 'SELECT 1')).rejects.toMatchObject({ code: '3D000' });
});
