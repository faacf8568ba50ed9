import { until } from '@drydock/testing/wait';
import mysql from 'mysql2/promise';
import type { Engine } from '../src/engines/list-engines';
import type { MysqlServer } from '../src/server/mysql';
import { compareServers, Moment } from '../src/upgrade/compare';
import { catchUpServer, copyServer, ReplicatedSwitch, type ReplicationMove } from '../src/upgrade/replication';
import { demandingContent } from './demanding-content';
import { customerAccounts, laterGrants, oddContent } from './odd-content';
import { ask, Servers } from './servers';

const account = 300_907;
const secret = 'a1'.repeat(32);

interface Rig {
  old: MysqlServer;
  target: MysqlServer;
  move: ReplicationMove;
}

function pairOf(from: Engine, to: Engine): Rig {
  const servers = new Servers();
  const rig = {} as Rig;
  beforeEach(async () => {
    const [old, target] = [await servers.startReplicable(from, account), await servers.startReplicable(to, account)];
    const sideOf = ({ admin, engine: { release } }: MysqlServer) => ({ admin, release });
    Object.assign(rig, { old, target, move: { old: sideOf(old), target: sideOf(target), secret } });
    await ask(old.admin, ...customerAccounts);
  });
  afterEach(() => servers.close());
  return rig;
}

const asOwner = (server: MysqlServer, ...statements: string[]) =>
  ask({ ...server.admin, user: 'owner', password: 'Owner-1' }, ...statements);

/** A whole upgrade, from its beginning to its comparison. `npm test` runs this case for one pair of versions. */
export function followCases(from: Engine, to: Engine): void {
  const rig = pairOf(from, to);

  test('follows a server that is written to and changed meanwhile, holds the same at the switch with each event as it was, and no code of the customer has run on it', async () => {
    const { old, target, move } = rig;
    await asOwner(
      old,
      ...oddContent('mariadb'),
      'DROP VIEW other.broken',
      'DROP TABLE shop.moved',
      "CREATE EVENT shop.once ON SCHEDULE AT '2037-01-01 00:00:00' ON COMPLETION PRESERVE DO SELECT 1",
      'CREATE EVENT shop.early ON SCHEDULE EVERY 1 HOUR DISABLE DO SELECT 1',
    );
    await ask(old.admin, ...laterGrants);
    const writer = await mysql.createConnection({ ...old.admin, user: 'owner', password: 'Owner-1' });
    let written = 0;
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) {
        await writer.query('INSERT INTO shop.kinds (f, t) VALUES (?, ?)', [written, `row ${written}`]);
        written += 1;
      }
    })();
    await until(() => written > 20);
    await copyServer(move);
    await asOwner(
      old,
      'CREATE TABLE shop.later (a INT, b VARCHAR(20) CHARACTER SET utf8mb4) PARTITION BY HASH (a) PARTITIONS 3',
      "CREATE FUNCTION shop.later(a VARCHAR(10) CHARACTER SET utf8mb4) RETURNS CHAR(3) CHARACTER SET utf8mb4 DETERMINISTIC RETURN 'ö'",
      "INSERT INTO shop.later VALUES (1, 'x'), (2, 'y'), (2, 'y')",
      'ALTER TABLE other.child ADD COLUMN more INT DEFAULT 7',
      "INSERT INTO shop.kinds (f, d, t) VALUES (-0e0, -0e0, 'written later')",
      "CREATE EVENT shop.woken ON SCHEDULE EVERY 1 HOUR DO INSERT INTO noted VALUES (CURRENT_USER(), 'woken')",
      'CREATE EVENT shop.off ON SCHEDULE EVERY 1 HOUR DISABLE DO SELECT 1',
      'ALTER EVENT shop.ticks DISABLE',
      'ALTER EVENT shop.early ENABLE',
      'CREATE VIEW shop.new_view AS SELECT a FROM shop.later',
      'DELETE FROM shop.later WHERE a = 1',
      'SET PASSWORD = PASSWORD("Owner-2")',
      'SET PASSWORD = PASSWORD("Owner-1")',
    );
    // The server disables a one-time event that it keeps (PRESERVE) once it has run, and writes that to no binary log.
    await ask(old.admin, 'SET SESSION sql_log_bin = 0', "ALTER DEFINER = owner@'%' EVENT shop.once DISABLE");
    const seen = written;
    await until(() => written > seen + 20);
    await copyServer(move);
    await catchUpServer(move);
    isWriting = false;
    await writing;
    await writer.end();
    const opened = await ReplicatedSwitch.open(move);
    await ask(old.admin, 'SET GLOBAL read_only = ON');
    await opened.bringLevel();
    await opened.close();
    const moment = await Moment.open(move.target);
    await moment.take();
    await ask(target.admin, 'ALTER USER owner ACCOUNT UNLOCK');
    await asOwner(
      target,
      "INSERT INTO shop.later VALUES (9, 'of the new one')",
      'UPDATE shop.kinds SET f = -1 WHERE id > 5000',
    );
    expect(await compareServers(move, moment)).toEqual({ outcome: 'equal', tables: 7, names: [] });
    await moment.close();
    expect(await compareServers(move, null)).toMatchObject({
      outcome: 'undecided',
      names: ['table `shop`.`kinds`', 'table `shop`.`later`'],
    });
    expect(await ask(target.admin, 'SHOW SLAVE STATUS')).toEqual([]);
    const events = (await ask(
      target.admin,
      "SELECT EVENT_NAME AS n, DEFINER AS d, STATUS AS s FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop'",
    )) as Record<'n' | 'd' | 's', string>[];
    expect(events.map(({ n, d, s }) => `${n} of ${d}: ${s}`).sort()).toEqual([
      'early of owner@%: ENABLED',
      'off of owner@%: DISABLED',
      'once of owner@%: DISABLED',
      'ticks of owner@%: DISABLED',
      'woken of owner@%: ENABLED',
    ]);
    const [noted] = (await ask(target.admin, "SELECT COUNT(*) AS n FROM shop.noted WHERE who NOT LIKE 'owner@%'")) as {
      n: number;
    }[];
    expect(noted?.n).toBe(0);
  });
}

export function upgradeCases(from: Engine, to: Engine): void {
  const rig = pairOf(from, to);

  test('the schema of an application with many features is copied and compares equal', async () => {
    const { old, move } = rig;
    await asOwner(old, 'USE shop', ...demandingContent('mariadb'));
    await copyServer(move);
    await catchUpServer(move);
    expect(await compareServers(move, null)).toMatchObject({ outcome: 'equal', names: [] });
  });

  test('a difference of one value, one row, one type, one key, one right, one view or one line of code is found', async () => {
    const { old, target, move } = rig;
    await asOwner(
      old,
      'CREATE TABLE shop.a (n INT, t TEXT, b BINARY(2) DEFAULT 0xFF00)',
      "INSERT INTO shop.a (n, t) VALUES (1, 'x'), (2, NULL)",
      'CREATE VIEW shop.v AS SELECT 1',
      'CREATE PROCEDURE shop.p (n INT) SQL SECURITY INVOKER SELECT n',
      'CREATE TRIGGER shop.g BEFORE INSERT ON shop.a FOR EACH ROW SET @seen = 1',
      'CREATE EVENT shop.e ON SCHEDULE EVERY 1 HOUR DO DO 1',
    );
    await copyServer(move);
    await catchUpServer(move);
    const changed = async (there: string, back: string): Promise<unknown> => {
      const moment = await Moment.open(move.target);
      await ask(target.admin, 'STOP SLAVE', 'SET SESSION sql_log_bin = 0', there);
      await moment.take();
      const { outcome, names } = await compareServers(move, moment);
      await moment.close();
      await ask(target.admin, 'SET SESSION sql_log_bin = 0', back);
      return [outcome, ...names];
    };
    expect(await changed("UPDATE shop.a SET t = '' WHERE n = 2", 'UPDATE shop.a SET t = NULL WHERE n = 2')).toEqual([
      'different',
      'table `shop`.`a`',
    ]);
    expect(
      await changed("INSERT INTO shop.a (n, t) VALUES (1, 'x')", 'DELETE FROM shop.a WHERE n = 1 LIMIT 1'),
    ).toEqual(['different', 'table `shop`.`a`']);
    const owner = 'CREATE OR REPLACE DEFINER = owner';
    expect(await changed('DROP VIEW shop.v', `${owner} VIEW shop.v AS SELECT 1`)).toEqual([
      'different',
      'view `shop`.`v`',
    ]);
    expect(await changed('ALTER TABLE shop.a MODIFY t LONGTEXT', 'ALTER TABLE shop.a MODIFY t TEXT')).toEqual([
      'different',
      'table `shop`.`a`',
    ]);
    for (const [object, there, back] of [
      ['table `shop`.`a`', 'CREATE INDEX i ON shop.a (n)', 'DROP INDEX i ON shop.a'],
      ['table `shop`.`a`', 'ALTER TABLE shop.a ALTER n SET DEFAULT 7', 'ALTER TABLE shop.a ALTER n SET DEFAULT NULL'],
      [
        'table `shop`.`a`',
        'ALTER TABLE shop.a ALTER b SET DEFAULT 0xFE00',
        'ALTER TABLE shop.a ALTER b SET DEFAULT 0xFF00',
      ],
      ['table `shop`.`a`', 'ALTER TABLE shop.a MODIFY t TEXT COLLATE latin1_bin', 'ALTER TABLE shop.a MODIFY t TEXT'],
      ['schema `shop`', 'ALTER DATABASE shop COLLATE latin1_bin', 'ALTER DATABASE shop COLLATE latin1_swedish_ci'],
      ["account 'owner'@'%'", 'REVOKE TRIGGER ON shop.* FROM owner', 'GRANT TRIGGER ON shop.* TO owner'],
      ['view `shop`.`v`', `${owner} SQL SECURITY INVOKER VIEW shop.v AS SELECT 1`, `${owner} VIEW shop.v AS SELECT 1`],
      [
        'procedure `shop`.`p`',
        'ALTER PROCEDURE shop.p SQL SECURITY DEFINER',
        'ALTER PROCEDURE shop.p SQL SECURITY INVOKER',
      ],
      [
        'procedure `shop`.`p`',
        `${owner} PROCEDURE shop.p (n INT) SQL SECURITY INVOKER SELECT n + 1`,
        `${owner} PROCEDURE shop.p (n INT) SQL SECURITY INVOKER SELECT n`,
      ],
      [
        'trigger `shop`.`g` of a',
        `${owner} TRIGGER shop.g BEFORE INSERT ON shop.a FOR EACH ROW SET @seen = 2`,
        `${owner} TRIGGER shop.g BEFORE INSERT ON shop.a FOR EACH ROW SET @seen = 1`,
      ],
      [
        'event `shop`.`e`',
        'ALTER DEFINER = owner EVENT shop.e ON SCHEDULE EVERY 2 HOUR',
        'ALTER DEFINER = owner EVENT shop.e ON SCHEDULE EVERY 1 HOUR',
      ],
    ] as const)
      expect(await changed(there, back)).toEqual(['different', object]);
    expect(await changed('DO 1', 'DO 1')).toEqual(['equal']);
  });

  test('a right of the owner on its own schema makes no difference, but a right on another schema or of another account does', async () => {
    const { old, target, move } = rig;
    await asOwner(old, 'CREATE TABLE shop.a (n INT)');
    await copyServer(move);
    await catchUpServer(move);
    const owner = { user: 'owner', schema: 'shop' };
    const compare = async (...changes: string[]): Promise<unknown> => {
      await ask(target.admin, 'STOP SLAVE', 'SET SESSION sql_log_bin = 0', ...changes);
      const { names } = await compareServers({ old: { ...move.old, owner }, target: { ...move.target, owner } }, null);
      return names;
    };
    expect(await compare('REVOKE INSERT, CREATE ON shop.* FROM owner')).toEqual([]);
    expect(await compare('REVOKE INSERT ON other.* FROM owner')).toEqual(["account 'owner'@'%'"]);
    expect(await compare('GRANT INSERT ON other.* TO owner', "GRANT INSERT ON shop.* TO 'read''er'@'%'")).toEqual([
      "account 'read''er'@'%'",
    ]);
  });

  test('unchecked and large content of a customer’s session is copied, both before replication starts and after', async () => {
    const { old, target, move } = rig;
    const make = (name: string): Promise<unknown> =>
      asOwner(
        old,
        'SET SESSION innodb_strict_mode = 0, check_constraint_checks = 0',
        `CREATE TABLE shop.${name} (a INT CHECK (a > 0), b LONGBLOB, c LONGBLOB) ROW_FORMAT = COMPACT KEY_BLOCK_SIZE = 4`,
        `INSERT INTO shop.${name} VALUES (-1, REPEAT('b', 9000000), '')`,
        `UPDATE shop.${name} SET c = REPEAT('c', 9000000)`,
      );
    await make('early');
    await copyServer(move);
    await make('late');
    await catchUpServer(move);
    const sums =
      'SELECT a, MD5(CONCAT(MD5(b), MD5(c))) AS sum FROM shop.early UNION ALL SELECT a, MD5(CONCAT(MD5(b), MD5(c))) FROM shop.late';
    expect(await ask(target.admin, sums)).toEqual(await ask(old.admin, sums));
  });

  test('a one-time event whose time comes during the copy is run by one of the two servers', async () => {
    const { old, target, move } = rig;
    const past = "AT '2001-09-10 00:00:00' DO INSERT INTO";
    await asOwner(
      old,
      'CREATE TABLE shop.runs (event VARCHAR(10))',
      // With the session's clock in 2001, the server creates events whose time has passed and which it has not run.
      'SET SESSION timestamp = 1000000000',
      `CREATE EVENT shop.first ON SCHEDULE ${past} runs VALUES ('first')`,
    );
    await copyServer(move);
    const events = (server: MysqlServer): Promise<unknown[]> =>
      ask(server.admin, "SELECT EVENT_NAME AS n FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop'");
    expect(await events(target)).toEqual([{ n: 'first' }]);
    await ask(old.admin, 'SET GLOBAL event_scheduler = ON');
    await until(async () => (await events(old)).length === 0);
    await ask(old.admin, 'SET GLOBAL event_scheduler = OFF');
    await asOwner(
      old,
      'SET SESSION timestamp = 1000000000',
      `CREATE EVENT shop.second ON SCHEDULE ${past} runs VALUES ('second')`,
    );
    await catchUpServer(move);
    expect(await events(target)).toEqual([{ n: 'second' }]);
    const opened = await ReplicatedSwitch.open(move);
    await opened.bringLevel();
    await opened.close();
    await ask(target.admin, 'SET GLOBAL event_scheduler = ON');
    await until(async () => (await events(target)).length === 0);
    expect(await ask(target.admin, 'SELECT event FROM shop.runs ORDER BY 1')).toEqual([
      { event: 'first' },
      { event: 'second' },
    ]);
  });

  test('no customer can log in to the target before it is opened, and an object that it refuses is named', async () => {
    const { old, target, move } = rig;
    await asOwner(
      old,
      'CREATE TABLE shop.a (n INT)',
      'CREATE VIEW shop.broken AS SELECT n FROM shop.a',
      'DROP TABLE shop.a',
    );
    await expect(copyServer(move)).rejects.toMatchObject({
      code: 'statement_refused',
      object: 'view `shop`.`broken`',
      isPermanent: true,
    });
    await asOwner(old, 'DROP VIEW shop.broken');
    await copyServer(move);
    await expect(asOwner(target, 'SELECT 1')).rejects.toMatchObject({ errno: 4151 });
    const logs = await ask(old.admin, 'SHOW BINLOG EVENTS LIMIT 100000');
    expect(JSON.stringify(logs)).not.toMatch(/drydock_/);
  });
}
