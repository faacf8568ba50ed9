/**
 * Tests upgrades of tables whose rows no longer fit an index or a partition key. A function of the index or the key was
 * redefined after the rows were written.
 *
 * @tier long
 * @processes
 */
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { type DatabasesWorld, makeDatabase, openWorld, query } from '../../test/databases-world';

let world: DatabasesWorld;
beforeAll(async () => {
  world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

const define = (value: string): string =>
  `CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN ${value}; END'`;

it.each([
  [
    'a unique index',
    'CREATE TABLE t (a int PRIMARY KEY); CREATE UNIQUE INDEX by_f ON t (f(a))',
    '0',
    'index public.by_f cannot go over',
  ],
  [
    'an exclusion constraint',
    'CREATE TABLE t (a int PRIMARY KEY, CONSTRAINT apart EXCLUDE USING gist (int4range(f(a), f(a), $$[]$$) WITH &&))',
    '0',
    'constraint apart of table public.t cannot go over',
  ],
  [
    'a partition key',
    `CREATE TABLE t (a int) PARTITION BY LIST (f(a)); CREATE TABLE one PARTITION OF t FOR VALUES IN (1);
     CREATE TABLE two PARTITION OF t FOR VALUES IN (2)`,
    '3 - $1',
    'table public.t cannot go over',
  ],
])(
  'rows that no longer fit the function of %s are told by the preflight, and refuse the upgrade before anything is begun',
  async (_, made, later, told) => {
    const { id, url } = await makeDatabase(world);
    for (const sql of [define('$1'), made, 'INSERT INTO t VALUES (1), (2)']) await query(url, sql);
    await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {} });
    const preflight = async (): Promise<Preflight> =>
      (await world.api.call('POST', `/v1/databases/${id}/upgrade/preflight`, { body: { engine_version: '18' } }))
        .json as Preflight;
    expect((await preflight()).findings.filter(({ level }) => level === 'ERROR')).toEqual([]);
    await query(url, define(later));
    const refused = { level: 'ERROR', code: 'rows_refused', detail: expect.stringContaining(told) };
    const { findings } = await preflight();
    expect(findings.filter(({ level }) => level === 'ERROR')).toEqual([refused]);

    const accepted = await world.api.call('POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '18' } });
    const view = await ended(world, accepted.headers['location']);
    expect(view).toMatchObject({ status: 'failed', error: { code: 'upgrade_precheck_failed' } });
    expect(view.error?.['findings']).toEqual(findings);
    expect(view.steps.filter(({ status }) => status === 'succeeded')).toEqual([]);
    expect((await world.host.client.readDatabase(id)).upgrade).toBeNull();
    const database = (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;
    expect(database).toMatchObject({ status: 'available', engine_version: '16' });
    expect(await query(url, 'SELECT count(*)::int AS n FROM t')).toEqual([{ n: 2 }]);
  },
);
