/**
 * Runs as root too, because each instance then has an account of its own.
 *
 * @processes
 * @root
 */
import { readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createDatabaseHostClient } from '@drydock/agent/clients';
import { findPostmaster } from '@drydock/postgres';
import { runSql, withClient } from '@drydock/postgres/testing/run-sql';
import { until } from '@drydock/testing/wait';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  customer,
  findInstance,
  killHost,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../test/host';

let host: TestHost;
beforeAll(async () => {
  host = await spawnHost(await newHostFolder());
});
afterAll(() => clearHost(host));

test('killed with -9 and started again, the host serves the same databases at the same addresses', async () => {
  const databaseId = newDatabaseId();
  const database = await createDatabase(host.client, databaseId, 17);
  await runSql(customer(database), 'create table kept as select 7 as n');
  await killHost(host);
  host = await spawnHost(host.folder);
  // `is_up` is false if the server does not answer within seconds, as on a busy machine after a start. So the test
  // repeats the call.
  const up = await until(async () => host.client.readDatabase(databaseId).then((found) => found.is_up && found));
  expect(up).toMatchObject({ port: database.port, ca_certificate: database.ca_certificate, major: 17 });
  expect(await runSql(customer(database), 'select n from kept')).toEqual([{ n: 7 }]);
});

test('a database whose record cannot be read answers `instance_down` and loses nothing, while the others are served', async () => {
  const [databaseId, otherId] = [newDatabaseId(), newDatabaseId()];
  for (const id of [databaseId, otherId]) await createDatabase(host.client, id, 17);
  const file = path.join(host.folder.databasesDir, 'live', databaseId, 'record.json');
  const record = await readFile(file);
  await killHost(host);
  await writeFile(file, record.subarray(0, 100));
  host = await spawnHost(host.folder);
  await until(async () => (await host.client.readDatabase(otherId)).is_up);
  for (const call of [
    host.client.readDatabase(databaseId),
    createDatabase(host.client, databaseId, 17),
    host.client.destroyDatabase(databaseId, claim(2)),
  ])
    await expect(call).rejects.toMatchObject({ code: 'instance_down' });
  await killHost(host);
  await writeFile(file, record);
  host = await spawnHost(host.folder);
  await until(async () => (await host.client.readDatabase(databaseId)).is_up);
});

test('a shell in an instance reads neither a secret of the host nor the data of another instance, and ends no process of theirs', async () => {
  const [databaseId, otherId] = [newDatabaseId(), newDatabaseId()];
  for (const id of [databaseId, otherId]) await createDatabase(host.client, id, 17);
  const [own, other] = [findInstance(host, databaseId), findInstance(host, otherId)];
  const run = (command: string): Promise<unknown> =>
    codeOf(runSql({ connectionString: own.adminUrl }, `copy (select 1) to program 'cat > /dev/null; ${command}'`));
  expect(await run('true')).toBe('done');
  const { databasesDir } = host.folder;
  const attempts = [
    `cat ${path.join(databasesDir, 'tls/authority.key')}`,
    `cat /proc/${host.child.pid}/environ`,
    `ls ${other.dataDir}`,
    `cat ${path.join(other.dataDir, '../password')}`,
    `cat ${path.join(other.dataDir, '../tls/server.key')}`,
    `cat ${path.join(own.dataDir, '../password')}`,
    `kill -0 ${host.child.pid}`,
    `kill -0 ${findPostmaster(other.dataDir)?.pid}`,
  ];
  for (const attempt of attempts) expect([attempt, await run(attempt)]).toEqual([attempt, '38000']);
});

test('a session that asks for more memory than it may have loses its statement, and the instance serves on', async () => {
  const database = await createDatabase(host.client, newDatabaseId(), 17);
  expect(await codeOf(runSql(customer(database), "select length(repeat('x', 600000000))"))).toBe('53200');
  expect(await runSql(customer(database), "select length(repeat('x', 100000000))")).toEqual([{ length: 100_000_000 }]);
});

test('an older fence is refused for good: after a newer one, after a restart, after the database has gone', async () => {
  const databaseId = newDatabaseId();
  await createDatabase(host.client, databaseId, 16);
  await host.client.abandonUpgrade(databaseId, 'none', claim(5));
  await expect(host.client.abandonUpgrade(databaseId, 'none', claim(4))).rejects.toMatchObject({ code: 'stale_fence' });
  await killHost(host);
  host = await spawnHost(host.folder);
  await expect(host.client.destroyDatabase(databaseId, claim(4))).rejects.toMatchObject({ code: 'stale_fence' });
  await host.client.destroyDatabase(databaseId, claim(6));
  await host.client.destroyDatabase(databaseId, claim(6));
  await expect(createDatabase(host.client, databaseId, 16)).rejects.toMatchObject({ code: 'stale_fence' });
  await expect(host.client.readDatabase(databaseId)).rejects.toMatchObject({ code: 'unknown_database' });
  const ledger = await readFile(path.join(host.folder.databasesDir, 'ledger.ndjson'), 'utf8');
  const lines = ledger
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(lines).toContainEqual(
    expect.objectContaining({ database: databaseId, op: 'post_upgrade_abandon', fence: '4', outcome: 'refused' }),
  );
});

test('a preflight whose schema changes while it is read says so, and what to do', async () => {
  const databaseId = newDatabaseId();
  const database = await createDatabase(host.client, databaseId, 17);
  await runSql(customer(database), 'create table orders (id int primary key)');
  const admin = Object.assign(new URL(findInstance(host, databaseId).adminUrl), { pathname: '/shop' });
  await withClient(admin.href, async (gate) => {
    const judged = host.client.precheck(databaseId, { toMajor: 18, withTrial: true });
    judged.catch(() => undefined);
    const shut = 'begin; lock table pg_catalog.pg_extension in access exclusive mode';
    const waiting = `select query from pg_catalog.pg_stat_activity where pid in (select pid from pg_catalog.pg_locks
      where not granted and relation = 'pg_catalog.pg_extension'::regclass)`;
    // pg_dump takes its snapshot, reads `pg_extension`, and then locks the tables that the snapshot shows. This
    // function lets other queries through until pg_dump itself waits for `pg_extension`.
    const isHeld = async (): Promise<boolean> => {
      await gate.query('select pg_catalog.pg_stat_clear_snapshot()');
      const { rows } = await gate.query<{ query: string }>(waiting);
      if (rows.some(({ query }) => query.includes('extrelocatable'))) return true;
      if (rows.length > 0) await gate.query(`commit; ${shut}`);
      return false;
    };
    await gate.query(shut);
    await until(isHeld, { what: 'pg_dump at the gate', timeoutMs: 80_000 });
    await gate.query('alter table orders rename to renamed; commit');
    expect((await judged).findings.filter(({ level }) => level === 'ERROR')).toEqual([
      {
        level: 'ERROR',
        code: 'schema_not_read',
        detail:
          'The schema changed or was locked while it was read: relation "public.orders" does not exist. ' +
          'Ask again while no schema changes run.',
      },
    ]);
  });
  const again = await host.client.precheck(databaseId, { toMajor: 18, withTrial: true });
  expect(again.findings.filter(({ level }) => level === 'ERROR')).toEqual([]);
});

test('a call without a valid token is refused, and the refusal of a wrong body or major says what is wrong', async () => {
  const url = `http://127.0.0.1:${host.folder.controlPort}`;
  const stranger = createDatabaseHostClient({ url, secret: 'ab'.repeat(32) });
  await expect(stranger.readDatabase(newDatabaseId())).rejects.toMatchObject({ code: 'unauthenticated' });
  await stranger.close();
  const size = { vcpu: 1, ram_gb: 1, storage_gb: 10 };
  const wanted = {
    mode: 'live' as const,
    major: 15,
    database_name: 'shop',
    username: 'shop_owner',
    password: 'the-owner-s-password',
    size,
  };
  await expect(host.client.ensureDatabase(newDatabaseId(), wanted, claim(1))).rejects.toMatchObject({
    code: 'major_not_installed',
  });
  const reserved = { ...wanted, major: 16, username: 'pg_monitor' };
  await expect(host.client.ensureDatabase(newDatabaseId(), reserved, claim(1))).rejects.toMatchObject({
    code: 'invalid_request',
  });
});

test('an upgrade that finds the disk full is refused with the reason', async () => {
  const databaseId = newDatabaseId();
  await createDatabase(host.client, databaseId, 16);
  const ledger = path.join(host.folder.databasesDir, 'ledger.ndjson');
  await rename(ledger, `${ledger}.aside`);
  // A write to /dev/full fails as a write to a full disk does.
  await symlink('/dev/full', ledger);
  const move = { upgrade_id: 'up', to_major: 17 as const, path: 'offline' as const };
  try {
    await expect(host.client.prepareTarget(databaseId, move, claim(2))).rejects.toMatchObject({ code: 'no_space' });
  } finally {
    await rm(ledger);
    await rename(`${ledger}.aside`, ledger);
  }
  await host.client.prepareTarget(databaseId, move, claim(2));
});
