/**
 * Upgrades a MariaDB twice through the API while a client writes.
 *
 * @tier long
 * @processes
 */
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { CreatedDatabase, DatabaseCatalogue, ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { fenceViolations } from '@drydock/testing/ledger';
import { serviceBackends } from '@drydock/testing/scope';
import { describeWith } from '@drydock/testing/skipped';
import { SteadyWriter } from '@drydock/testing/steady-writer';
import { until } from '@drydock/testing/wait';
import mysql from 'mysql2/promise';
import { type DatabasesWorld, openWorld } from '../../test/databases-world';
import { askMysql, type MysqlAddress, mariadbVersions } from '../../test/mysql-client';

const versions = ['10.5', '10.11', '11.8'] as const;
const missing = versions.filter((version) => !mariadbVersions.includes(version)).map((version) => `mariadb@${version}`);

describeWith(missing.length === 0 ? '' : `npm run engines -- ${missing.join(' ')}`)('a managed MariaDB', () => {
  const tokens = createFaultTokens();
  let world: DatabasesWorld;
  let isOver = false;
  let id: string;
  let address: MysqlAddress;
  const hire = (): void => {
    world.spawnWorker({ DRYDOCK_FAULTS: tokens.folder }).once('exit', () => {
      if (!isOver) hire();
    });
  };
  beforeAll(async () => {
    world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    hire();
    const body = { label: 'Shop', engine: 'mysql', engine_version: versions[0], size: 'small' };
    const made = await succeed<CreatedDatabase>(world, 'POST', '/v1/databases', { body });
    ({ id } = made);
    const { host, port, username: user, database_name: database } = await read();
    address = { host, port, user, password: made.password, database };
    await askMysql(
      address,
      'create table notes (id int primary key, text text)',
      'create table totals (n int)',
      'insert into totals values (0)',
      'create trigger counts after insert on notes for each row update totals set n = n + 1',
    );
  });
  afterAll(async () => {
    isOver = true;
    await world.close();
    tokens.remove();
  });

  const read = async (): Promise<ManagedDatabase> =>
    (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;
  const preflight = async (engine_version: string): Promise<Preflight> =>
    (await world.api.call('POST', `/v1/databases/${id}/upgrade/preflight`, { body: { engine_version } }))
      .json as Preflight;
  const connect = async () => {
    const client = await mysql.createConnection({
      ...address,
      ssl: { rejectUnauthorized: false },
      connectTimeout: 30_000,
    });
    client.on('error', () => undefined);
    const write = async (number: number) =>
      void (await client.query('insert into notes values (?, ?)', [number, 'while moving']));
    return { write, close: async () => client.destroy() };
  };

  it('is offered each newer version that the host has', async () => {
    const { engines } = (await world.api.call('GET', '/v1/databases/catalogue')).json as DatabaseCatalogue;
    const offered = engines.flatMap((one) => one.versions).filter(({ flavour }) => flavour === 'mariadb');
    expect(offered.map(({ version, upgradable_to }) => [version, upgradable_to])).toEqual([
      ['10.5', ['10.11', '11.8']],
      ['10.11', ['11.8']],
      ['11.8', []],
    ]);
  });

  it('is refused for an object that the new version does not accept, by its name, and is not moved', async () => {
    await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {} });
    await askMysql(address, 'create table gone (a int)', 'create view broken as select a from gone', 'drop table gone');
    const { refusal, findings, would } = await preflight('10.11');
    expect(refusal).toBeNull();
    expect(would).toMatch(/clients write on, and pause for less than a second/);
    expect(findings[0]).toMatchObject({
      level: 'ERROR',
      code: 'statement_refused',
      detail: expect.stringContaining('.`broken`'),
    });
    const accepted = await world.api.call('POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '10.11' } });
    const view = await ended(world, accepted.headers['location']);
    expect(view).toMatchObject({ status: 'failed', error: { code: 'upgrade_precheck_failed' } });
    expect(await read()).toMatchObject({ status: 'available', engine_version: '10.5' });
    await askMysql(address, 'drop view broken');
  });

  it.each([
    ['10.11', 'upgrade_database.cutover.after_effect'],
    ['11.8', 'upgrade_database.copy_data.after_effect'],
  ])(
    'moves to %s behind its address although the worker is killed: every acknowledged row is there',
    async (version, point) => {
      const first = await read();
      const offset = version === '11.8' ? 1_000_000 : 0;
      const writer = new SteadyWriter({
        rowsPerSecond: 50,
        connect: async () => {
          const session = await connect();
          return { ...session, write: (number) => session.write(offset + number) };
        },
      });
      await until(() => writer.written > 20);
      tokens.arm(point, 'kill');
      try {
        await succeed(world, 'POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: version } });
        expect(tokens.left()).toEqual([]);
      } finally {
        await writer.stop();
      }
      const { acknowledged } = await writer.stop();
      const { host, port } = first;
      const label = `MariaDB ${version}`;
      expect(await read()).toMatchObject({
        status: 'available',
        engine_version: version,
        engine_label: label,
        host,
        port,
      });
      const kept = new Set((await askMysql(address, 'select id from notes')).map((row) => Number(row['id'])));
      expect(acknowledged.filter((number) => !kept.has(offset + number))).toEqual([]);
      expect(await askMysql(address, 'select n from totals')).toEqual([{ n: kept.size }]);
      const [{ v } = { v: '' }] = await askMysql(address, 'select version() as v');
      expect(v).toMatch(new RegExp(`^${version.replace('.', '\\.')}\\.`));
    },
  );

  it('is moved neither back nor to another flavour, and the host never accepts an older fence after a newer one', async () => {
    const upgrade = async (engine_version: string): Promise<unknown> =>
      refusalOf(await world.api.call('POST', `/v1/databases/${id}/upgrade`, { body: { engine_version } }));
    expect([await upgrade('10.11'), await upgrade('9.7')]).toEqual(['422 version_not_newer', '422 engine_differs']);
    expect(fenceViolations(world.host.ledger())).toEqual([]);
  });
});
