/**
 * What a customer makes by the settings of its own session, and could be dumped and not loaded.
 *
 * @tier long
 * @processes
 * @root long
 */
import { describeEngines } from '../../test/engines';
import { ask, Servers } from '../../test/servers';
import { transfer } from '../../test/transfer';
import { reachesSystem } from '../dump/transfer-account';
import type { MysqlServer } from '../server/mysql';

const account = 300_908;
const owner = ({ admin }: MysqlServer) => ({ ...admin, user: 'owner', password: 'Owner-1' });

describeEngines(['mariadb@10.5', 'mariadb@10.11', 'mariadb@11.8'], (engine) => {
  const servers = new Servers();
  let from: MysqlServer;
  let to: MysqlServer;
  beforeEach(async () => {
    [from, to] = [await servers.start(engine, { account }), await servers.start(engine, { account })];
    await ask(from.admin, 'CREATE DATABASE shop', "CREATE USER owner IDENTIFIED BY 'Owner-1'", 'GRANT ALL ON shop.* TO owner');
  });
  afterEach(() => servers.close());

  test('a row larger than what a client may send at once, and rows and tables that were made unchecked, come back', async () => {
    const wide = Array.from({ length: 300 }, (_, at) => `c${at} CHAR(30) CHARACTER SET latin1 NOT NULL DEFAULT ''`).join(', ');
    await ask(
      owner(from),
      'CREATE TABLE shop.large (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB, c LONGBLOB)',
      "INSERT INTO shop.large (id, a) VALUES (1, REPEAT('a', 9000000))",
      "UPDATE shop.large SET b = REPEAT('b', 9000000)",
      "UPDATE shop.large SET c = REPEAT('c', 9000000)",
      'SET SESSION innodb_strict_mode = 0, check_constraint_checks = 0',
      'CREATE TABLE shop.unchecked (a INT CHECK (a > 0))',
      'INSERT INTO shop.unchecked VALUES (-1)',
      'CREATE TABLE shop.odd (a INT) ROW_FORMAT = COMPACT KEY_BLOCK_SIZE = 4',
      `CREATE TABLE shop.wide (${wide}) ROW_FORMAT = DYNAMIC`,
    );
    expect((await transfer(from, to)).findings).toEqual([]);
    const [sizes] = await ask(owner(to), 'SELECT LENGTH(a) AS a, LENGTH(b) AS b, LENGTH(c) AS c FROM shop.large');
    expect(sizes).toEqual({ a: 9_000_000, b: 9_000_000, c: 9_000_000 });
    expect(await ask(owner(to), 'SELECT a FROM shop.unchecked')).toEqual([{ a: -1 }]);
    const [limit] = await ask(
      owner(to),
      'SELECT @@GLOBAL.max_allowed_packet = @@max_allowed_packet AND @@max_allowed_packet < 20000000 AS same',
    );
    expect(limit).toEqual({ same: 1 });
  });

  test('a table of MERGE comes back without the rows of others', async () => {
    await ask(
      owner(from),
      'CREATE TABLE shop.part (a INT) ENGINE = MyISAM',
      'INSERT INTO shop.part VALUES (1), (2)',
      'CREATE TABLE shop.all_parts (a INT) ENGINE = MERGE UNION = (shop.part)',
    );
    const { findings } = await transfer(from, to);
    expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(['not_transactional']));
    expect(await ask(owner(to), 'SELECT a FROM shop.all_parts')).toEqual([{ a: 1 }, { a: 2 }]);
    expect(await ask(owner(to), 'SELECT a FROM shop.part')).toEqual([{ a: 1 }, { a: 2 }]);
  });

  test('who has dropped the own database makes it again behind a restore', async () => {
    await ask(owner(from), 'DROP DATABASE shop');
    await transfer(from, to);
    expect(await ask(owner(to), 'CREATE DATABASE shop', 'CREATE TABLE shop.again (a INT)', 'SELECT a FROM shop.again')).toEqual([]);
  });
});

test.each(['mysql', 'MySQL', '%', 'm_sql', 'my%', '___'])('a right on %s reaches a schema of the server', (schema) => {
  expect(reachesSystem({ on: 'schema', schema })).toBe(true);
});

test.each(['shop', String.raw`my\_ql`, 'mysqlx', 'mysq_l', 'm.sql', 'é%', '[a-z]%l$'])('a right on %s does not', (schema) => {
  expect(reachesSystem({ on: 'schema', schema })).toBe(false);
});
