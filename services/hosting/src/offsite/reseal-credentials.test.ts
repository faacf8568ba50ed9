import path from 'node:path';
import { type TestPostgres, testPostgres } from '@drydock/postgres/testing/postgres';
import { createLog } from '@drydock/service/telemetry';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type HostingDatabase, openDatabase } from '../context/database.store';
import { insertPending, listSealed } from './offsite.store';
import { createResealing, isSealedWith, openCredentials, sealCredentials } from './offsite-credentials';

const [before, after] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const credentials = { accessKeyId: 'CUSTOMERKEY', secretAccessKey: 'the-customers-secret' };
let postgres: TestPostgres;
let database: HostingDatabase;
beforeAll(async () => {
  postgres = await testPostgres({ serviceDir: path.resolve(__dirname, '../..') });
  database = openDatabase(postgres.url, { max: 2, applicationName: 'test' });
});
afterAll(async () => {
  await database.close();
  await postgres.close();
});

test('while the secret is rotated, every credential is sealed anew with the current one, once, and opens as it did', async () => {
  const place = { siteId: uuidv7(), endpoint: 'https://s3.example.test', bucket: 'copies', prefix: 'a' };
  const own = { ...place, orgId: uuidv7(), mode: 'live', region: 'us-east-1' } as const;
  for (const key of [before, after])
    await database.transaction((tx) =>
      insertPending(tx, { ...own, id: uuidv7(), sealedCredentials: sealCredentials(key, place, credentials) }),
    );
  const sealed = async () =>
    (await listSealed(database.pool, '00000000-0000-0000-0000-000000000000', 10)).map((row) => row.sealed);
  const log = createLog({ service: 'test', level: 'silent' });
  const isRenewed = async (): Promise<boolean> => (await sealed()).every((each) => isSealedWith(after, place, each));
  const [, second] = await sealed();
  const resealing = createResealing(database, [after, before], log);
  resealing.start();
  await until(isRenewed);
  await resealing.stop();
  const renewed = await sealed();
  expect(renewed.map((each) => openCredentials([after], place, each))).toEqual([credentials, credentials]);
  expect(renewed[1]).toEqual(second);
  const again = createResealing(database, [after, before], log);
  again.start();
  await again.stop();
  expect(await sealed()).toEqual(renewed);
});
