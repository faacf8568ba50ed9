/**
 * Uses a MariaDB and a MySQL from creation to deletion, through the API and a client.
 *
 * @tier long
 * @processes
 */
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { CreatedDatabase, DatabaseCatalogue, ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { succeed } from '@drydock/service/testing/follow-workflow';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type DatabasesWorld, openWorld } from '../test/databases-world';
import { askMysql, codeOfMysql, fetchedEngines, type MysqlAddress } from '../test/mysql-client';

/**
 * Versions to which an upgrade is refused: one of the other flavour, an older one, and one that is not in the
 * catalogue.
 */
const refused = {
  mariadb: { ofTheOther: '9.7', older: '10.5', unknown: '12.3' },
  mysql: { ofTheOther: '11.8', older: '8.0', unknown: '10.0' },
};
const last = (['mariadb', 'mysql'] as const).flatMap(
  (flavour) => fetchedEngines.findLast((engine) => engine.flavour === flavour) ?? [],
);
const withPrograms = last.length === 0 ? describe.skip : describe;

withPrograms.each(last)('a managed $label (needs npm run engines)', ({ label, flavour, version }) => {
  let world: DatabasesWorld;
  let id: string;
  let address: MysqlAddress;
  beforeAll(async () => {
    world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    world.spawnWorker();
  });
  afterAll(() => world.close());

  const read = async (): Promise<ManagedDatabase> =>
    (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;

  it('is offered if the host has its programs, and no other version is', async () => {
    const { engines } = (await world.api.call('GET', '/v1/databases/catalogue')).json as DatabaseCatalogue;
    const offered = engines.find(({ engine }) => engine === 'mysql')?.versions ?? [];
    expect(offered.map((one) => one.version).sort()).toEqual(fetchedEngines.map((engine) => engine.version).sort());
    const body = { label: 'Shop', engine: 'mysql', engine_version: '8.0', size: 'small' };
    expect(refusalOf(await world.api.call('POST', '/v1/databases', { body }))).toMatch(
      /^422 (?:engine|version)_not_offered$/,
    );
  });

  it('is created, shown, listed and used by TLS', async () => {
    const body = { label: 'Shop', engine: 'mysql', engine_version: version, size: 'small' };
    const made = await succeed<CreatedDatabase>(world, 'POST', '/v1/databases', { body });
    ({ id } = made);
    const managed = await read();
    expect(managed).toMatchObject({
      status: 'available',
      engine: 'mysql',
      engine_version: version,
      engine_label: label,
    });
    expect((await world.api.call('GET', '/v1/databases')).json).toMatchObject({ data: [{ id }] });
    const { host, port, username: user, database_name: database } = managed;
    address = { host, port, user, password: made.password, database };
    await askMysql(
      address,
      'create table notes (id int auto_increment primary key, text text)',
      "insert into notes (text) values ('one')",
    );
    expect(await askMysql(address, 'select text from notes')).toEqual([{ text: 'one' }]);
    expect(await codeOfMysql(askMysql({ ...address, password: 'another-password' }, 'select 1'))).toBe(
      'ER_ACCESS_DENIED_ERROR',
    );
  });

  it('is backed up and restored to the backup, and the replaced content becomes a backup too', async () => {
    const backup = await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {} });
    await askMysql(address, "insert into notes (text) values ('two')", 'create view texts as select text from notes');
    const path = `/v1/databases/${id}/backups/${backup.id}/restore`;
    // A preflight begins a trial, which locks the database while it runs. So the test repeats the preflight until the
    // trial has ended.
    const preflight = await until(async () => {
      const said = (await world.api.call('POST', `${path}/preflight`, { body: {} })).json as Preflight;
      return said.refusal?.code !== 'operation_in_progress' && said;
    });
    expect(preflight).toMatchObject({ refusal: null, point: { id: backup.id } });
    await succeed(world, 'POST', path, { body: {} });
    expect(await read()).toMatchObject({
      status: 'available',
      engine_version: version,
      host: address.host,
      port: address.port,
    });
    expect(await askMysql(address, 'select text from notes')).toEqual([{ text: 'one' }]);
    const { data } = (await world.api.call('GET', `/v1/databases/${id}/backups`)).json as { data: DatabaseBackup[] };
    expect(data.map(({ kind, status, engine_version }) => [kind, status, engine_version])).toEqual([
      ['pre_restore', 'completed', version],
      ['on_demand', 'completed', version],
    ]);
    // A restore of the safety copy reverses the first restore.
    await succeed(world, 'POST', `/v1/databases/${id}/backups/${data[0]?.id}/restore`, { body: {} });
    expect(await askMysql(address, 'select text from texts order by text')).toEqual([{ text: 'one' }, { text: 'two' }]);
  });

  it('can begin with a backup of another database, with the names that its stored programs use and a password of its own', async () => {
    const { data } = (await world.api.call('GET', `/v1/databases/${id}/backups`)).json as { data: DatabaseBackup[] };
    const body = {
      label: 'Copy',
      engine: 'mysql',
      engine_version: version,
      size: 'small',
      from: { backup_id: data[0]?.id },
    };
    const copy = await succeed<CreatedDatabase>(world, 'POST', '/v1/databases', { body });
    const {
      host,
      port,
      username: user,
      database_name: database,
    } = (await world.api.call('GET', `/v1/databases/${copy.id}`)).json as ManagedDatabase;
    const copied = { host, port, user, password: copy.password, database };
    expect(copied).toMatchObject({ user: address.user, database: address.database });
    expect(await askMysql(copied, 'select count(*) as n from notes')).toMatchObject([{ n: expect.any(Number) }]);
    expect(await codeOfMysql(askMysql({ ...copied, password: address.password }, 'select 1'))).toBe(
      'ER_ACCESS_DENIED_ERROR',
    );
    const postgres = { ...body, engine: 'postgres', engine_version: '18' };
    expect(refusalOf(await world.api.call('POST', '/v1/databases', { body: postgres }))).toBe('422 engine_differs');
    await succeed(world, 'DELETE', `/v1/databases/${copy.id}`);
  });

  it('refuses every upgrade and says why', async () => {
    const upgrade = async (engine_version: string): Promise<unknown> =>
      refusalOf(await world.api.call('POST', `/v1/databases/${id}/upgrade`, { body: { engine_version } }));
    const { ofTheOther, older, unknown } = refused[flavour];
    expect(await upgrade(ofTheOther)).toBe('422 engine_differs');
    expect(await upgrade(older)).toBe('422 version_not_newer');
    expect(await upgrade(unknown)).toBe('422 version_not_offered');
    expect(await upgrade('18')).toBe('422 version_not_offered');
  });

  it('is deleted, and its address with it', async () => {
    await succeed(world, 'DELETE', `/v1/databases/${id}`);
    expect((await world.api.call('GET', `/v1/databases/${id}`)).status).toBe(404);
    expect(await codeOfMysql(askMysql(address, 'select 1'))).toBe('ECONNREFUSED');
  });
});
