/**
 * @tier long
 * @processes
 * @root long
 */

import { until } from '@drydock/testing/wait';
import mysql from 'mysql2/promise';
import { demandingContent, histories } from '../../test/demanding-content';
import { allEngines, describeEngines } from '../../test/engines';
import { customerAccounts, laterGrants, oddContent } from '../../test/odd-content';
import { ask, Servers } from '../../test/servers';
import { changed, holdDump, transfer, transferDefinitions } from '../../test/transfer';
import { dumpDatabase } from '../dump/dump-database';
import { sweepTransferAccounts } from '../dump/transfer-account';
import type { MysqlServer } from '../server/mysql';
import { Session } from '../session/session';
import { loadDatabase } from './load-database';

const account = 300_906;

describeEngines(allEngines, (engine) => {
  const servers = new Servers();
  let from: MysqlServer;
  beforeAll(async () => {
    from = await servers.start(engine, { account });
    await ask(from.admin, ...customerAccounts);
    await ask({ ...from.admin, user: 'owner', password: 'Owner-1' }, ...oddContent(engine.flavour));
    await ask(from.admin, ...laterGrants);
  });
  afterAll(() => servers.close());

  test('definitions, rows, accounts and rights of a customer come back as they were, and none of the customer’s code has run', async () => {
    const to = await servers.start(engine, { account, isEventSchedulerOn: true });
    const before = await holdDump(from);
    const { findings } = await transfer(from, to);
    expect(findings.map(({ code, object }) => ({ code, object }))).toEqual([
      { code: 'not_transactional', object: 'table `shop`.`moved`' },
      { code: 'view_broken', object: 'view `other`.`broken`' },
    ]);
    const [{ n } = { n: -1 }] = (await ask(to.admin, "SELECT COUNT(*) AS n FROM shop.noted WHERE what <> 'event'")) as {
      n: number;
    }[];
    expect(n).toBe(0);
    await ask(to.admin, 'SET GLOBAL event_scheduler = OFF');
    const after = await holdDump(to);
    const comparable = ({ content, manifest }: typeof before): unknown => ({
      ...content,
      programs: (content['programs'] as { name: string }[]).filter(({ name }) => name !== 'broken'),
      tables: (content['tables'] as { name: string; definition: string }[]).filter(({ name }) => name !== 'noted'),
      rows: manifest.tables.filter(({ name }) => name !== 'noted'),
    });
    expect(comparable(after)).toEqual(comparable(before));
    const owner = { ...to.admin, user: 'owner', password: 'Owner-1' };
    expect(await ask(owner, 'SELECT one, wört, shop.größe() AS written FROM shop.a')).toEqual([
      { one: 1, wört: 'ß', written: 'ä' },
    ]);
    const users = await ask(to.admin, "SELECT User FROM mysql.user WHERE User LIKE 'drydock%'");
    expect(users).toEqual([]);
  });

  test('a dump waits for no running query, and other sessions read the same table meanwhile', async () => {
    const customer = { ...from.admin, user: 'owner', password: 'Owner-1' };
    const gate = await mysql.createConnection(from.admin);
    await gate.query("SELECT GET_LOCK('gate', 0)");
    const long = ask(customer, "SELECT GET_LOCK('gate', 600) FROM shop.kinds LIMIT 1").catch(() => []);
    try {
      const waiting = "SELECT 1 AS waits FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'";
      await until(async () => (await ask(from.admin, waiting)).length === 1);
      expect((await holdDump(from)).manifest.tables).not.toEqual([]);
      expect(await ask(customer, 'SELECT 1 AS one FROM shop.kinds LIMIT 1')).toEqual([{ one: 1 }]);
    } finally {
      gate.destroy();
      await long;
    }
  });

  test('rows are read in batches that end at the size that was asked for', async () => {
    const session = await Session.open(from.admin, { flavour: engine.flavour });
    const numbers = 'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300)';
    const lengths: number[] = [];
    for await (const rows of session.batches(`${numbers} SELECT REPEAT('x', 1000) FROM n`, 1_000))
      lengths.push(rows.length);
    expect(lengths).toEqual(Array.from({ length: 300 }, () => 1));
    lengths.splice(0);
    for await (const rows of session.batches(`${numbers} SELECT REPEAT('x', 1000) FROM n`, 99_001))
      lengths.push(rows.length);
    expect(lengths).toEqual([100, 100, 100]);
    await session.close();
  });

  test('a trial loads every definition without reading a row', async () => {
    const to = await servers.start(engine, { account });
    const { findings } = await transferDefinitions(from, to);
    expect(findings.map(({ object }) => object)).toEqual(['table `shop`.`moved`', 'view `other`.`broken`']);
    const [loaded, whole] = [await holdDump(to), await holdDump(from)];
    const namesOf = (key: string, { content }: typeof loaded): string[] =>
      (content[key] as { name: string }[]).map(({ name }) => name).filter((name) => name !== 'broken');
    for (const key of ['tables', 'programs', 'accounts']) expect(namesOf(key, loaded)).toEqual(namesOf(key, whole));
    expect(loaded.manifest.tables.reduce((sum, { rows }) => sum + rows, 0)).toBe(0);
  });

  test('the schema of an application with many features comes back as it was', async () => {
    const [demanding, to] = [await servers.start(engine, { account }), await servers.start(engine, { account })];
    await ask(demanding.admin, ...customerAccounts);
    const content = [...demandingContent(engine.flavour), ...(engine.flavour === 'mariadb' ? histories : [])];
    await ask({ ...demanding.admin, user: 'owner', password: 'Owner-1' }, 'USE shop', ...content);
    const { findings } = await transfer(demanding, to);
    const kept = engine.flavour === 'mariadb' ? ['table `shop`.`hist`', 'table `shop`.`hist2`'] : [];
    expect(findings.map(({ code, object }) => `${code} ${object}`)).toEqual(
      kept.map((object) => `history_not_kept ${object}`),
    );
    // The catalogue is compared as well, because both dumps could lack the same object.
    const made = `SELECT ROUTINE_TYPE AS kind, ROUTINE_NAME AS name, ROUTINE_DEFINITION AS text FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'shop'
      UNION ALL SELECT TABLE_TYPE, TABLE_NAME, NULL FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'
      UNION ALL SELECT TABLE_NAME, COLUMN_NAME, CONCAT_WS(' ', COLUMN_DEFAULT, COLUMN_COMMENT) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop'
      UNION ALL SELECT 'TRIGGER', TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'shop'
      UNION ALL SELECT 'EVENT', EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop' ORDER BY 1, 2`;
    expect(await ask(to.admin, made)).toEqual(await ask(demanding.admin, made));
    expect(await holdDump(to)).toEqual(await holdDump(demanding));
  });

  test.each([
    [
      'a program that would run as the platform',
      (text: string) => text.replaceAll('DEFINER=`owner`@`%`', 'DEFINER=`root`@`localhost`'),
      /would run as root/,
    ],
    [
      'a statement that is no definition',
      (text: string) => text.replace(/"definition":"CREATE TABLE /, '"definition":"DROP TABLE '),
      /no definition of a table/,
    ],
    [
      'a definition in a schema of the server',
      (text: string) => text.replace('"schema":"shop"', '"schema":"mysql"'),
      /no schema of the dump/,
    ],
  ])('a dump is refused before the first statement for %s', async (_what, change, reason) => {
    const to = await servers.start(engine, { account });
    const { admin } = to;
    const { flavour, release } = engine;
    const sections = changed(dumpDatabase({ admin: from.admin, flavour, release }), change);
    await expect(loadDatabase({ admin, flavour, sections })).rejects.toThrow(reason);
    expect(JSON.stringify(await ask(admin, 'SHOW DATABASES'))).not.toContain('shop');
  });

  test('accounts that a crash has left of a transfer are dropped, and none of the customer’s', async () => {
    await ask(from.admin, "CREATE USER drydock_left@localhost IDENTIFIED BY 'Left-1'");
    await sweepTransferAccounts(from.admin, engine.flavour);
    const users = (await ask(from.admin, 'SELECT User FROM mysql.user')) as { User: string }[];
    expect(users.filter(({ User }) => /^(drydock_|owner)/.test(User))).toEqual([{ User: 'owner' }]);
  });
});
