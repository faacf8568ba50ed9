/**
 * Kills the database agent at each point of a switch to another instance.
 *
 * @tier long
 * @processes
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseDescription } from '@drydock/agent/database';
import { findPostmaster } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { SteadyWriter } from '@drydock/postgres/testing/steady-writer';
import { until } from '@drydock/testing/wait';
import {
  claim,
  clearHost,
  codeOf,
  customer,
  findInstance,
  killHost,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../../test/host';
import {
  compare,
  createFilled,
  cutOverWhileKilling,
  expectNothingLost,
  killInCutover,
  prepareMove,
  runStage,
  upgradeId,
  writerPassword,
} from '../../test/move';

let host: TestHost;
let databaseId: string;
let database: DatabaseDescription;
beforeEach(async () => {
  host = await spawnHost(await newHostFolder());
  databaseId = newDatabaseId();
  database = await createFilled(host.client, databaseId);
});
afterEach(async () => {
  await Promise.all(writers.splice(0).map((writer) => writer.stop()));
  await clearHost(host);
});

/** The writers of the running test. They must be stopped, because a writer never ends by itself. */
const writers: SteadyWriter[] = [];

const startWriter = async (): Promise<SteadyWriter> => {
  const writer = new SteadyWriter({
    config: customer(database, { user: 'app_rw', password: writerPassword }),
    rowsPerSecond: 200,
    name: 'w',
  });
  writers.push(writer);
  await until(() => writer.written > 20);
  return writer;
};

const readIds = async (): Promise<number[]> =>
  (await runSql<{ id: string }>(customer(database), "select id from written where writer = 'w'")).map(({ id }) =>
    Number(id),
  );

const majorAt = async (): Promise<number> => {
  const [row] = await runSql<{ major: number }>(
    customer(database),
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  return row?.major ?? 0;
};

/** Tells whether a customer could write to an instance directly at its port, over TLS and without the endpoint. */
const canWrite = async (which: 'old' | 'target'): Promise<boolean> => {
  const direct = customer({ ...database, port: findInstance(host, databaseId, which).port });
  return (await codeOf(runSql(direct, 'create temp table probe (a int); select 1'))) === 'done';
};

test('the writer finds the new version behind the same address: nothing acknowledged is lost, sequences go on, every table is equal', async () => {
  const writer = await startWriter();
  await prepareMove(host.client, databaseId);
  const numberBefore = await runSql<{ n: string }>(customer(database), "select nextval('invoice_no') as n");
  expect(await codeOf(runSql(customer(database), 'create table refused (a int)'))).toBe('55006');
  await host.client.cutover(databaseId, upgradeId, claim(1));
  expect(await majorAt()).toBe(18);
  await expectNothingLost(writer, readIds);
  expect(await compare(host.client, databaseId)).toMatchObject({ outcome: 'equal', tables: 12, names: [] });
  const numberAfter = await runSql<{ n: string }>(customer(database), "select nextval('invoice_no') as n");
  expect(Number(numberAfter[0]?.n)).toBeGreaterThan(Number(numberBefore[0]?.n));
  expect([await canWrite('old'), await canWrite('target')]).toEqual([false, true]);
  await runStage(host.client, databaseId, 'finish');
  await host.client.restOld(databaseId, upgradeId, claim(1));
  await runSql(customer(database), 'create table accepted (a int)');
  await host.client.retireOld(databaseId, upgradeId, claim(1));
  expect((await host.client.readDatabase(databaseId)).upgrade).toBeNull();
});

test('killed with -9 before, at and after the switch, the host finds the instance that the record names, and it alone takes writes', async () => {
  const writer = await startWriter();
  await prepareMove(host.client, databaseId);
  for (const [point, major] of [
    ['sealed', 16],
    ['before_switch', 16],
    ['after_switch', 18],
  ] as const) {
    host = await killInCutover(host, databaseId, point);
    expect([point, await majorAt()]).toEqual([point, major]);
    expect([await canWrite('old'), await canWrite('target')]).toEqual([major === 16, major === 18]);
  }
  await host.client.cutover(databaseId, upgradeId, claim(1));
  await expectNothingLost(writer, readIds);
});

const killPostgres = (which: 'old' | 'target') => () =>
  process.kill(findPostmaster(findInstance(host, databaseId, which).dataDir)?.pid ?? 0, 'SIGKILL');

test('an instance that is killed with -9 while nobody can write, first the new and then the old one, loses no acknowledged row', async () => {
  const writer = await startWriter();
  await prepareMove(host.client, databaseId);
  expect(await cutOverWhileKilling(host, databaseId, killPostgres('target'))).toBe('refused');
  expect(await majorAt()).toBe(16);
  await cutOverWhileKilling(host, databaseId, killPostgres('old'));
  await until(() => host.client.cutover(databaseId, upgradeId, claim(1)), { timeoutMs: 60_000, everyMs: 200 });
  expect(await majorAt()).toBe(18);
  await expectNothingLost(writer, readIds);
});

test('an upgrade that is abandoned before the cutover leaves the database as it was: version 16, DDL accepted, nothing of itself', async () => {
  const traces = `select (select count(*) from pg_publication) + (select count(*) from pg_replication_slots) + (select count(*) from pg_event_trigger)
    + (select count(*) from pg_namespace where nspname ~ 'drydock') + (select count(*) from pg_class where relreplident = 'f')
    + (select count(*) from pg_roles where rolname ~ '^(rd|ld|pb|rp|sb)_') as traces`;
  const writer = await startWriter();
  await prepareMove(host.client, databaseId);
  await host.client.abandonUpgrade(databaseId, upgradeId, claim(1));
  await host.client.abandonUpgrade(databaseId, upgradeId, claim(1));
  expect(await majorAt()).toBe(16);
  expect(await runSql(customer(database), traces)).toEqual([{ traces: '0' }]);
  await runSql(customer(database), 'create table accepted (a int)');
  await expectNothingLost(writer, readIds);
  await expect(host.client.cutover(databaseId, upgradeId, claim(1))).rejects.toMatchObject({ code: 'unknown_upgrade' });
});

test('tables that the owner truncates, alters and drops after the switch are no difference, and are named if they could not be compared', async () => {
  for (const name of ['cut', 'wider', 'dropped'])
    await runSql(
      customer(database),
      `create table ${name} as select 1 as id; alter table ${name} add primary key (id)`,
    );
  await prepareMove(host.client, databaseId);
  await host.client.cutover(databaseId, upgradeId, claim(1));
  await runSql(
    customer(database),
    'truncate cut; insert into cut values (2); alter table wider add b int default 7; drop table dropped',
  );
  expect(await compare(host.client, databaseId)).toMatchObject({
    outcome: 'undecided',
    names: ['"public"."cut"', '"public"."dropped"'],
    differed: [],
  });
});

test('on the offline path new sessions wait until the new version has everything, also when the host is killed with -9 meanwhile', async () => {
  const writer = await startWriter();
  await prepareMove(host.client, databaseId, 'offline');
  const writtenBefore = writer.written;
  await killHost(host);
  host = await spawnHost(host.folder);
  expect((await host.client.readDatabase(databaseId)).upgrade).toMatchObject({
    are_writes_blocked: true,
    phase: 'prepared',
  });
  expect(writer.written).toBe(writtenBefore);
  await host.client.cutover(databaseId, upgradeId, claim(1));
  expect(await compare(host.client, databaseId)).toMatchObject({ outcome: 'equal' });
  await expectNothingLost(writer, readIds);
  await expect(host.client.abandonUpgrade(databaseId, upgradeId, claim(1))).rejects.toMatchObject({
    code: 'already_switched',
  });
});

test('of two upgrades within a day both old instances are kept, and both are removed with the second', async () => {
  const instances = (): string[] => {
    const record = JSON.parse(
      readFileSync(path.join(host.folder.databasesDir, 'live', databaseId, 'record.json'), 'utf8'),
    );
    return record.instances.map(({ major }: { major: number }) => major);
  };
  for (const [id, major] of [
    ['first', 17],
    ['second', 18],
  ] as const) {
    await prepareMove(host.client, databaseId, 'offline', { id, major });
    await host.client.cutover(databaseId, id, claim(1));
    await runStage(host.client, databaseId, 'finish', 1, id);
    await host.client.restOld(databaseId, id, claim(1));
  }
  expect(instances()).toEqual([16, 17, 18]);
  for (let again = 0; again < 2; again += 1) await host.client.retireOld(databaseId, 'second', claim(1));
  expect([instances(), (await host.client.readDatabase(databaseId)).upgrade, await majorAt()]).toEqual([
    [18],
    null,
    18,
  ]);
});
