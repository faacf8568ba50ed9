import { SeededRandom } from '@drydock/testing/seeded-random';
import type { Flavour } from '../src/engines/list-engines';
import { quoteName } from '../src/session/session';
import { itemsOf } from './hostile-items';
import { encode, Room } from './hostile-room';

/*
 * Schemas of a hostile customer. Together they have code wherever the server accepts code from an owner. Many names
 * look like SQL. In some of the character sets, a backslash is the second byte of a letter. Most of the code calls the
 * functions of `trapStatements`.
 */

export interface TrapTargets {
  owner: string;
  /** A file that no session may read, although it belongs to the account that runs the server. */
  file: string;
  /** A folder to which no session may write, although it belongs to the account that runs the server. */
  folder: string;
  /** The ids of sessions of the platform, which no customer may end. */
  connections: readonly number[];
}

/**
 * Statements that would create accounts, rights, settings and plugins. The server has their results only if a trap
 * succeeds.
 */
const prizes = (owner: string): string[] => [
  'CREATE USER prize',
  `GRANT ALL PRIVILEGES ON *.* TO ${owner} WITH GRANT OPTION`,
  `GRANT SELECT ON mysql.* TO ${owner}`,
  'SET GLOBAL max_connections = 77',
  'SET GLOBAL read_only = 0',
  "SET GLOBAL init_connect = 'SELECT 1'",
  "INSTALL SONAME 'ha_connect'",
  "INSTALL PLUGIN connect SONAME 'ha_connect.so'",
  "CREATE FUNCTION prize RETURNS STRING SONAME 'prize.so'",
  'CREATE DATABASE prize',
  'SET PASSWORD FOR root@localhost = PASSWORD("prize")',
  'FLUSH BINARY LOGS',
];

/**
 * Returns the trap. `spring` writes a record that no rollback removes: the account with whose rights it runs, and the
 * session's account. `take` tries everything that the caller's rights may allow. `attack` also tries what only a
 * procedure can do.
 */
export function trapStatements({ owner, file, folder, connections }: TrapTargets): string[] {
  const quiet = 'DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END';
  const attempts = [
    `INSERT INTO noted SELECT 'loot', CURRENT_USER(), USER(), LOAD_FILE('${file}') FROM (SELECT 1) one WHERE LOAD_FILE('${file}') IS NOT NULL`,
    `SELECT 'prize' INTO OUTFILE '${folder}/outfile'`,
    `SELECT 'prize' INTO DUMPFILE '${folder}/dumpfile'`,
    "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.access', 1073741823) WHERE User = CURRENT_USER()",
    `INSERT INTO mysql.db (Host, Db, User, Select_priv) VALUES ('%', 'mysql', '${owner}', 'Y')`,
    'SET GLOBAL max_connections = 77',
    'SET SESSION sql_log_bin = 0',
    ...connections.map((id) => `KILL ${id}`),
  ];
  return [
    "CREATE TABLE noted (what VARCHAR(200), acting VARCHAR(200), session VARCHAR(200), loot LONGBLOB) ENGINE = MyISAM COMMENT = 'trap'",
    `CREATE FUNCTION spring(what VARCHAR(200)) RETURNS INT MODIFIES SQL DATA SQL SECURITY DEFINER
      BEGIN ${quiet}; INSERT INTO noted VALUES (what, CURRENT_USER(), USER(), NULL); RETURN 1; END`,
    `CREATE FUNCTION take() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN ${quiet}; ${attempts.join('; ')}; RETURN 1; END`,
    `CREATE PROCEDURE attempt(statement TEXT) SQL SECURITY INVOKER
      BEGIN ${quiet}; SET @statement = statement; PREPARE s FROM @statement; EXECUTE s; DEALLOCATE PREPARE s; END`,
    `CREATE PROCEDURE attack() SQL SECURITY INVOKER
      BEGIN ${quiet}; ${prizes(owner)
        .map((prize) => `CALL attempt('${prize.replaceAll("'", "''")}')`)
        .join('; ')}; SET @taken = take(); END`,
    // All generated events of a schema may be disabled by chance, so each schema has this event.
    `CREATE EVENT sprung ON SCHEDULE EVERY 1 SECOND DO DO spring('event')`,
  ];
}

export interface HostileItem {
  kind: string;
  statements: Buffer[];
}

/** Returns the statements of one schema. The schema's owner runs them in the schema. */
export function hostileSchema(
  seed: number,
  number: number,
  { flavour, owner }: { flavour: Flavour; owner: string },
): HostileItem[] {
  const random = new SeededRandom(seed * 1_000_003 + number);
  const room = new Room(random, flavour, owner);
  const items = itemsOf(flavour);
  return random.pickSome(Object.keys(items), 8).map((kind) => {
    const settings = room.turn();
    const statements = items[kind]?.(room) ?? [];
    return { kind, statements: [...settings, ...statements].map((statement) => encode(statement, room.charset)) };
  });
}

/** The name of a schema. An owner cannot choose it. */
export const schemaName = (number: number): string => `h${number}`;
export const schemaGrant = (number: number, owner: string): string =>
  `GRANT ALL PRIVILEGES ON ${quoteName(schemaName(number))}.* TO ${owner}`;
