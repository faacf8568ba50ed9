/**
 * Kills the database agent at each point of the switch of a live MariaDB upgrade.
 *
 * @tier long
 * @processes
 */
import type { DatabaseDescription } from '@drydock/agent/database';
import { listFetched } from '@drydock/mysql';
import { describeWith } from '@drydock/testing/skipped';
import { SteadyWriter } from '@drydock/testing/steady-writer';
import { until } from '@drydock/testing/wait';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  newDatabaseId,
  newHostFolder,
  readRecord,
  spawnHost,
  type TestHost,
} from '../../test/host';
import {
  compare,
  cutOverWhileKilling,
  expectNothingLost,
  killInCutover,
  prepareMove,
  runStage,
  upgradeId,
} from '../../test/move';
import { askAdmin, askCustomer, connectCustomer, killMysql } from '../../test/mysql-customer';

const [from, to] = ['10.5', '11.8'];
const fetched = listFetched().map(({ flavour, version }) => `${flavour}@${version}`);
const missing = [from, to].map((version) => `mariadb@${version}`).filter((name) => !fetched.includes(name));

describeWith(missing.length === 0 ? '' : `npm run engines -- ${missing.join(' ')}`)(
  `a MariaDB ${from} that moves to ${to}`,
  () => {
    let host: TestHost;
    let databaseId: string;
    let database: DatabaseDescription;
    const writers: SteadyWriter[] = [];
    beforeEach(async () => {
      host = await spawnHost(await newHostFolder());
      databaseId = newDatabaseId();
      database = await createDatabase(host.client, databaseId, from);
      await ask(
        'create table written (id int primary key, text varchar(40))',
        'create table totals (n int)',
        'insert into totals values (0)',
        'create trigger counts after insert on written for each row update totals set n = n + 1',
        'create view texts as select text from written',
      );
    });
    afterEach(async () => {
      await Promise.all(writers.splice(0).map((writer) => writer.stop()));
      await clearHost(host);
    });

    const ask = (...statements: string[]): Promise<unknown> => askCustomer(database, ...statements);
    const startWriter = async (): Promise<SteadyWriter> => {
      const open = async () => {
        const client = await connectCustomer(database);
        const write = async (id: number) =>
          void (await client.query('insert into written values (?, ?)', [id, `row ${id}`]));
        return { write, close: async () => client.destroy() };
      };
      const writer = new SteadyWriter({ connect: open, rowsPerSecond: 100 });
      writers.push(writer);
      await until(() => writer.written > 20);
      return writer;
    };
    async function expectAllThere(writer: SteadyWriter): Promise<void> {
      let ids: number[] = [];
      await expectNothingLost(writer, async () => {
        ids = ((await ask('select id from written')) as { id: number }[]).map(({ id }) => id);
        return ids;
      });
      expect(await ask('select n from totals')).toEqual([{ n: ids.length }]);
    }
    const versionAt = async (): Promise<string> => {
      const [{ v } = { v: '' }] = (await ask('select version() as v')) as { v: string }[];
      return /^\d+\.\d+/.exec(v)?.[0] ?? '';
    };
    /** Tells whether a customer could write to an instance directly at its port, without the endpoint. */
    const canWrite = async (which: 'old' | 'target'): Promise<boolean> => {
      const { upgrade, instances } = readRecord(host, databaseId);
      const port = instances.find(({ instance_id }) => instance_id === upgrade?.[which])?.port ?? 0;
      return (await codeOf(askCustomer({ ...database, port }, 'update totals set n = n'))) === 'done';
    };

    test('the writer finds the new version behind the same address: nothing acknowledged is lost, and every table is equal', async () => {
      const writer = await startWriter();
      const judged = await host.client.precheck(databaseId, { toMajor: to, withTrial: true });
      expect(judged).toMatchObject({ path: 'logical', pause_seconds: 0 });
      expect(judged.findings.map(({ code }) => code)).toEqual(['keyless_tables', 'ddl_goes_over', 'sessions_end']);
      await prepareMove(host.client, databaseId, 'logical', { id: upgradeId, major: to });
      await ask(
        'create table later (a int)',
        'insert into later values (1)',
        'create event woken on schedule every 1 hour do delete from later where a < 0',
      );
      expect([await canWrite('old'), await canWrite('target')]).toEqual([true, false]);
      await host.client.cutover(databaseId, upgradeId, claim(1));
      expect(await versionAt()).toBe(to);
      expect(await compare(host.client, databaseId)).toMatchObject({ outcome: 'equal', tables: 3, names: [] });
      expect([await canWrite('old'), await canWrite('target')]).toEqual([false, true]);
      await expectAllThere(writer);
      expect(await ask('select * from later')).toEqual([{ a: 1 }]);
      const events = 'select definer, status from information_schema.events';
      expect(await ask(events)).toEqual([{ definer: 'shop_owner@%', status: 'ENABLED' }]);
      await runStage(host.client, databaseId, 'finish');
      await host.client.restOld(databaseId, upgradeId, claim(1));
      await host.client.retireOld(databaseId, upgradeId, claim(1));
      expect((await host.client.readDatabase(databaseId)).upgrade).toBeNull();
    });

    test('a database that becomes full during the upgrade is switched and compares equal, and its owner can fill the new one', async () => {
      await prepareMove(host.client, databaseId, 'logical', { id: upgradeId, major: to });
      await askAdmin(host, databaseId, 'old', 'revoke insert, create, trigger on shop.* from shop_owner');
      await host.client.cutover(databaseId, upgradeId, claim(1));
      expect(await compare(host.client, databaseId)).toMatchObject({ outcome: 'equal', names: [] });
      await ask("insert into written values (1, 'at the new version')", 'create table more (a int)');
      expect(await ask('select n from totals')).toEqual([{ n: 1 }]);
    });

    test('killed with -9 before, at and after the switch, the host finds the instance that the record names, and it alone takes writes', async () => {
      const writer = await startWriter();
      await prepareMove(host.client, databaseId, 'logical', { id: upgradeId, major: to });
      for (const [point, version] of [
        ['sealed', from],
        ['before_switch', from],
        ['after_switch', to],
      ] as const) {
        host = await killInCutover(host, databaseId, point);
        expect([point, await versionAt()]).toEqual([point, version]);
        expect([await canWrite('old'), await canWrite('target')]).toEqual([version === from, version === to]);
        if (version === from) await runStage(host.client, databaseId, 'catch_up');
      }
      await host.client.cutover(databaseId, upgradeId, claim(1));
      expect(await compare(host.client, databaseId)).toMatchObject({
        outcome: expect.stringMatching(/equal|undecided/),
      });
      await expectAllThere(writer);
    });

    test('an instance that is killed with -9 while the new one catches up, the old or the new one, loses no acknowledged row', async () => {
      const writer = await startWriter();
      await prepareMove(host.client, databaseId, 'logical', { id: upgradeId, major: to });
      for (const [which, version] of [
        ['target', to],
        ['old', from],
      ] as const) {
        killMysql(host, databaseId, version, which);
        await until(() => runStage(host.client, databaseId, 'catch_up').then(() => true), {
          timeoutMs: 60_000,
          everyMs: 200,
        });
      }
      await until(() => host.client.cutover(databaseId, upgradeId, claim(1)).then(() => true), {
        timeoutMs: 60_000,
        everyMs: 200,
      });
      expect(await compare(host.client, databaseId)).toMatchObject({ outcome: 'equal' });
      await expectAllThere(writer);
    });

    test('an instance that is killed with -9 while nobody can write, first the new and then the old one, loses no acknowledged row', async () => {
      const writer = await startWriter();
      await prepareMove(host.client, databaseId, 'logical', { id: upgradeId, major: to });
      expect(await cutOverWhileKilling(host, databaseId, () => killMysql(host, databaseId, to, 'target'))).toBe(
        'refused',
      );
      expect(await versionAt()).toBe(from);
      await cutOverWhileKilling(host, databaseId, () => killMysql(host, databaseId, from, 'old'));
      await until(() => host.client.cutover(databaseId, upgradeId, claim(1)).then(() => true), {
        timeoutMs: 60_000,
        everyMs: 200,
      });
      expect(await versionAt()).toBe(to);
      expect([await canWrite('old'), await canWrite('target')]).toEqual([false, true]);
      await expectAllThere(writer);
    });

    test('an upgrade that is abandoned before the switch leaves the database as it was, and nothing of itself', async () => {
      const writer = await startWriter();
      await prepareMove(host.client, databaseId, 'logical', { id: upgradeId, major: to });
      await host.client.abandonUpgrade(databaseId, upgradeId, claim(1));
      await host.client.abandonUpgrade(databaseId, upgradeId, claim(1));
      expect(await versionAt()).toBe(from);
      await expectAllThere(writer);
      expect(readRecord(host, databaseId)).toMatchObject({ upgrade: null, instances: [{ major: from }] });
    });

    test('the findings against an upgrade are named before anything begins', async () => {
      const codesOf = async () =>
        (await host.client.precheck(databaseId, { toMajor: to, withTrial: true })).findings.map(
          ({ code, detail }) => `${code} ${detail}`,
        );
      await ask('create table past (a int) with system versioning');
      expect((await codesOf())[0]).toMatch(/^history_not_kept .*shop\.past/);
      await ask(
        'drop table past',
        "xa start 'held'",
        'insert into totals values (1)',
        "xa end 'held'",
        "xa prepare 'held'",
      );
      expect((await codesOf())[0]).toMatch(/^prepared_transactions /);
      await ask("xa rollback 'held'");
      await ask(
        'create table plain (a int) engine = myisam',
        'create table gone (a int)',
        'create view broken as select a from gone',
      );
      expect((await codesOf())[0]).toMatch(/^engine_not_transactional .*shop\.plain/);
      await ask('drop table plain, gone');
      expect((await codesOf())[0]).toMatch(/^statement_refused .*view `shop`\.`broken`/);
    });
  },
);
