/**
 * The settings of a customer's session decide which content the server accepts. That content is loaded although the
 * loader's session has other settings.
 *
 * @tier long
 * @processes
 * @root long
 */
import { buffer } from 'node:stream/consumers';
import { allEngines, describeEngines } from '../../test/engines';
import { ask, Servers } from '../../test/servers';
import { transfer } from '../../test/transfer';
import { dumpDatabase } from '../dump/dump-database';
import type { Section } from '../dump/manifest';
import { reachesSystem } from '../dump/transfer-account';
import type { Engine } from '../engines/list-engines';
import type { MysqlServer } from '../server/mysql';
import { Session } from '../session/session';

const account = 300_908;
const owner = ({ admin }: MysqlServer) => ({ ...admin, user: 'owner', password: 'Owner-1' });

interface Pair {
  from: MysqlServer;
  to: MysqlServer;
}

/** Starts two servers for each test. The first server has a customer. */
function pairOf(engine: Engine): Pair {
  const servers = new Servers();
  const pair = {} as Pair;
  beforeEach(async () => {
    const [from, to] = [await servers.start(engine, { account }), await servers.start(engine, { account })];
    await ask(
      from.admin,
      'CREATE DATABASE shop',
      "CREATE USER owner IDENTIFIED BY 'Owner-1'",
      'GRANT ALL ON shop.* TO owner',
    );
    Object.assign(pair, { from, to });
  });
  afterEach(() => servers.close());
  return pair;
}

describeEngines(['mariadb@10.5', 'mariadb@10.11', 'mariadb@11.8'], (engine) => {
  const pair = pairOf(engine);

  test('a row that is larger than a client’s packet comes back, and so do rows and tables that the server did not check', async () => {
    const { from, to } = pair;
    const wide = Array.from(
      { length: 300 },
      (_, at) => `c${at} CHAR(30) CHARACTER SET latin1 NOT NULL DEFAULT ''`,
    ).join(', ');
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

  test('an owner who has dropped the database can create it again after a restore', async () => {
    const { from, to } = pair;
    await ask(owner(from), 'DROP DATABASE shop');
    await transfer(from, to);
    expect(
      await ask(owner(to), 'CREATE DATABASE shop', 'CREATE TABLE shop.again (a INT)', 'SELECT a FROM shop.again'),
    ).toEqual([]);
  });
});

describeEngines(allEngines, (engine) => {
  const pair = pairOf(engine);

  test('a table of MERGE comes back without the rows of others', async () => {
    const { from, to } = pair;
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

  test('a view that takes the place of a table while a dump is read ends the dump, and its code has changed nothing', async () => {
    const { from } = pair;
    await ask(
      owner(from),
      'CREATE TABLE shop.orders (a INT)',
      'CREATE TABLE shop.seen (who VARCHAR(100)) ENGINE = MyISAM',
      'CREATE FUNCTION shop.note() RETURNS INT BEGIN INSERT INTO shop.seen VALUES (CURRENT_USER()); RETURN 1; END',
    );
    const { admin, engine } = from;
    const sections = dumpDatabase({ admin, flavour: engine.flavour, release: engine.release })[Symbol.asyncIterator]();
    await sections.next();
    await ask(owner(from), 'DROP TABLE shop.orders', 'CREATE VIEW shop.orders AS SELECT shop.note() AS a');
    const section = (await sections.next()).value as Section;
    await expect(buffer(section.content)).rejects.toMatchObject({ code: 'dump_failed', isPermanent: false });
    await sections.return?.(undefined);
    expect(await ask(owner(from), 'SELECT who FROM shop.seen')).toEqual([]);
  });

  test('a one-time event whose time has passed since the dump is a finding that says so', async () => {
    const { from, to } = pair;
    await ask(
      from.admin,
      'SET SESSION timestamp = 1000000000',
      "CREATE DEFINER = owner@'%' EVENT shop.past ON SCHEDULE AT '2001-09-10 00:00:00' DO SELECT 1",
    );
    const { findings } = await transfer(from, to);
    const reason = expect.stringContaining('the time of the event has passed');
    expect(findings).toEqual([{ code: 'not_restored', object: 'event `shop`.`past`', reason }]);
  });

  test('a finding has the server’s message, also with letters beyond ASCII', async () => {
    const { from, to } = pair;
    await ask(
      owner(from),
      'CREATE TABLE shop.größe縗 (a INT)',
      'CREATE VIEW shop.broken AS SELECT a FROM shop.größe縗',
      'DROP TABLE shop.größe縗',
    );
    const { findings } = await transfer(from, to);
    expect(findings).toEqual([
      { code: 'view_broken', object: 'view `shop`.`broken`', reason: expect.stringContaining('shop.größe縗') },
    ]);
  });
});

describeEngines(['mysql@9.7'], (engine) => {
  const pair = pairOf(engine);

  test.each(['InnoDB', 'MyISAM'])(
    'rows of %s that satisfy a CHECK only under the settings of their session come back, and the CHECK is a finding',
    async (kind) => {
      const { from, to } = pair;
      const newYear = "'2020-01-01 00:00:00'";
      await ask(
        owner(from),
        `CREATE TABLE shop.dated (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NULL, n INT, doubled INT AS (n * 2) STORED,
        CONSTRAINT \`since \`\`2020\` CHECK (at >= ${newYear}), CONSTRAINT small CHECK (n < 10), CONSTRAINT never CHECK (n < 0) NOT ENFORCED) ENGINE = ${kind}`,
        "SET SESSION time_zone = '+05:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
        `INSERT INTO shop.dated (id, at, n) VALUES (0, '2020-06-01', 1), (5, ${newYear}, 2), (7, NULL, NULL)`,
      );
      const { findings } = await transfer(from, to);
      const reason = 'rows of the table violate it, so that it is not enforced';
      const expected = { code: 'not_restored', object: 'CHECK `since ``2020` of table `shop`.`dated`', reason };
      expect(findings.filter(({ code }) => code !== 'not_transactional')).toEqual([expected]);
      const rows = 'SELECT id, UNIX_TIMESTAMP(at) AS at, n, doubled FROM shop.dated ORDER BY id';
      expect(await ask(owner(to), rows)).toEqual(await ask(owner(from), rows));
      const enforced =
        "SELECT CONSTRAINT_NAME AS name FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_NAME = 'dated' AND ENFORCED = 'YES'";
      expect(await ask(owner(to), `${enforced} AND CONSTRAINT_TYPE = 'CHECK'`)).toEqual([{ name: 'small' }]);
    },
  );

  test('a routine whose name the server misreads is a finding, and exists under no other name', async () => {
    const { from, to } = pair;
    const session = await Session.open(owner(from), { flavour: 'mysql' });
    await session.run('USE shop');
    await session.run('SET NAMES gbk');
    // In gbk, 乣 is the byte 81 and a backtick.
    for (const name of ['a', '\x81```30', '\x81`'])
      await session.run(Buffer.from(`CREATE FUNCTION \`${name}\`() RETURNS INT DETERMINISTIC RETURN 1`, 'latin1'));
    await session.close();
    const { findings } = await transfer(from, to);
    const reason = 'the server reads its name as another one';
    expect(findings).toEqual([{ code: 'not_restored', object: 'function `shop`.`乣``0```', reason }]);
    const routines =
      "SELECT ROUTINE_NAME AS name FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'shop' ORDER BY 1";
    expect(await ask(owner(to), routines)).toEqual([{ name: 'a' }, { name: '乣' }]);
  });
});

test.each(['mysql', 'MySQL', '%', 'm_sql', 'my%', '___'])('a right on %s reaches a schema of the server', (schema) => {
  expect(reachesSystem({ on: 'schema', schema })).toBe(true);
});

test.each(['shop', String.raw`my\_ql`, 'mysqlx', 'mysq_l', 'm.sql', 'é%', '[a-z]%l$'])(
  'a right on %s reaches no schema of the server',
  (schema) => {
    expect(reachesSystem({ on: 'schema', schema })).toBe(false);
  },
);
