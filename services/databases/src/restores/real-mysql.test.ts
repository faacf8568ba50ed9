/**
 * Uses the MySQL schemas of real programs from `.ci/fetch-schemas`, with rows, in managed databases. `npm run chaos`
 * uses all of them.
 *
 * @tier long
 * @processes
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { CreatedDatabase, ManagedDatabase } from '@drydock/contracts/databases/databases';
import { carryOut, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { isChaos, serviceBackends } from '@drydock/testing/scope';
import { describeWith } from '@drydock/testing/skipped';
import { type DatabasesWorld, openWorld, preflightOf } from '../../test/databases-world';
import { askMysql, mariadbVersions } from '../../test/mysql-client';
import { fillMysqlTables, pipeSql, readMysqlContent } from '../../test/mysql-content';

const versions = ['10.5', '10.11', '11.8'] as const;
const folder = path.join(process.env['DRYDOCK_SCHEMAS'] ?? '/var/cache/drydock-schemas', 'mysql');

interface Program {
  /** The program's Debian package. */
  name: string;
  sql: string;
}

/** Lists the schemas. Only the chaos run uses all; other runs use two. */
function listMysqlSchemas(): Program[] {
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.sql')) : [];
  // Matches statements about other databases. They are removed, because the customer has only one database.
  const elsewhere = /^\s*(?:(?:CREATE DATABASE|source|GRANT)\b[^;]*;?|USE\s+\S+)\s*$/gim;
  const all = files.map((file) => ({
    name: path.basename(file, '.sql'),
    sql: readFileSync(path.join(folder, file), 'utf8').replace(elsewhere, ''),
  }));
  return all.slice(0, isChaos ? undefined : 2);
}

const otherEnginesSql = `SELECT TABLE_NAME AS name FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' ORDER BY 1`;

/** Returns statements that drop a third of the objects, and empty the tables of another third. */
function changesOf(content: readonly string[]): string[] {
  const objects = content.flatMap(
    (line) => /^(TABLE|VIEW|PROCEDURE|FUNCTION|TRIGGER) (\S+) /.exec(line)?.slice(1, 3).join(' ') ?? [],
  );
  return objects.flatMap((object, index) => {
    if (index % 3 === 0) return [`DROP ${object.replace(/^\w+/, '$& IF EXISTS')}`];
    return index % 3 === 1 && object.startsWith('TABLE') ? [`TRUNCATE ${object}`] : [];
  });
}

const schemas = listMysqlSchemas();
const missing = [
  ...versions
    .filter((version) => !mariadbVersions.includes(version))
    .map((version) => `npm run engines -- mariadb@${version}`),
  ...(schemas.length === 0 ? ['.ci/fetch-schemas'] : []),
];

describeWith(missing.join(', '))('a managed MariaDB', () => {
  let world: DatabasesWorld;
  beforeAll(async () => {
    world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    world.spawnWorker();
  });
  afterAll(() => world.close());

  const findingsOf = async (target: string, body: object) =>
    (await carryOut(world, 'POST', target, { body })).workflow.findings;

  test.each(schemas)(
    'with the schema of $name is restored and moved to 10.11 and 11.8 as the preflights say: every object, row and right',
    async ({ name, sql }) => {
      const startedAt = Date.now();
      const body = { label: name, engine: 'mysql', engine_version: versions[0], size: 'small' };
      const { id, password } = await succeed<CreatedDatabase>(world, 'POST', '/v1/databases', { body });
      const {
        host,
        port,
        username: user,
        database_name: database,
      } = (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;
      const address = { host, port, user, password, database };
      await pipeSql(address, sql);
      const { rows, empty } = await fillMysqlTables(address, 8);
      process.stderr.write(`${name}: ${rows} rows${empty.length === 0 ? '' : `, none in ${empty.join(', ')}`}\n`);
      const before = await readMysqlContent(address);
      const others = await askMysql(address, otherEnginesSql);
      const { id: backupId } = await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, {
        body: {},
      });

      await askMysql(address, 'SET foreign_key_checks = 0', ...changesOf(before), 'CREATE TABLE made_later (n INT)');
      expect(await readMysqlContent(address)).not.toEqual(before);
      const restore = `/v1/databases/${id}/backups/${backupId}/restore`;
      const told = others.map(() => 'not_transactional');
      const plan = await preflightOf(world, restore);
      expect([plan.refusal, plan.findings.map(({ code }) => code)]).toEqual([null, ['backup_proven', ...told]]);
      expect((await findingsOf(restore, {})).map(({ code }) => code)).toEqual(told);
      expect(await readMysqlContent(address)).toEqual(before);
      const upgrade = `/v1/databases/${id}/upgrade`;
      const refused = await preflightOf(world, upgrade, { engine_version: versions[1] });
      const errors = refused.findings.filter(({ level }) => level === 'ERROR').map(({ code }) => code);
      expect(errors).toEqual(others.length > 0 ? ['engine_not_transactional'] : []);
      // The finding `engine_not_transactional` advises this change.
      await askMysql(
        address,
        'SELECT 1',
        ...others.map((table) => `ALTER TABLE \`${String(table['name'])}\` ENGINE = InnoDB`),
      );
      for (const version of versions.slice(1)) {
        await fillMysqlTables(address, 1);
        const present = await readMysqlContent(address);
        const { refusal, findings } = await preflightOf(world, upgrade, { engine_version: version });
        expect([refusal, findings.filter(({ level }) => level !== 'INFO')]).toEqual([null, []]);
        expect(await findingsOf(upgrade, { engine_version: version })).toEqual([]);
        const [served] = await askMysql(address, 'SELECT version() AS version');
        expect(String(served?.['version']).startsWith(`${version}.`)).toBe(true);
        expect(await readMysqlContent(address)).toEqual(present);
      }
      await succeed(world, 'DELETE', `/v1/databases/${id}`, {});
      process.stderr.write(`${name}: as it was, after ${Math.round((Date.now() - startedAt) / 1_000)} s\n`);
    },
  );
});
