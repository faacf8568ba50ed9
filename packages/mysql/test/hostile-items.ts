import type { Flavour } from '../src/engines/list-engines';
import { type Room, rawByte } from './hostile-room';

const spring = (how: string): string => `spring('${how}')`;
const both = (how: string): string => `${spring(how)} + take()`;

type Items = Record<string, (room: Room) => string[]>;

/**
 * Each item returns statements that create objects of one kind, and everything that these objects need. The server may
 * refuse some of the statements.
 */
const items: Items = {
  'odd table'(room) {
    const [table, a, b, c] = [room.name(), room.name(), room.name(), room.name()];
    const value = room.text();
    return [
      `CREATE TABLE ${table} (id INT AUTO_INCREMENT PRIMARY KEY COMMENT ${room.text()}, ${a} VARCHAR(200) DEFAULT ${value} COMMENT ${room.text()},
        ${b} ENUM(${value}, 'b') DEFAULT ${value}, ${c} SET('x', ${value.replaceAll(',', ';')}) DEFAULT 'x',
        KEY ${room.name()} (${a}(20)), CONSTRAINT ${room.name()} CHECK (${a} <> ${room.text()})) COMMENT = ${room.text()}`,
      `INSERT INTO ${table} (${a}) VALUES (${value}), (DEFAULT), (NULL)`,
    ];
  },
  'table in the character set of its client'(room) {
    const [table, a, b] = [room.name(), room.name(), room.name()];
    // In sjis, a backslash in an ENUM is not restored, because U+005C and the byte 5C are different letters.
    const value = room.text().replaceAll('\\', '/');
    return [
      `CREATE TABLE ${table} (${a} VARCHAR(100) DEFAULT ${value}, ${b} ENUM(${value}, 'b') DEFAULT ${value}, c TEXT, d BLOB) CHARACTER SET ${room.charset}`,
      `INSERT INTO ${table} VALUES (${value}, ${value}, ${room.text()}, ${room.text()}), (NULL, 'b', NULL, X'00275C60FF')`,
    ];
  },
  'generated columns and defaults that tell whose they are'(room) {
    const [table, a] = [room.name(), room.name()];
    return [
      `CREATE TABLE ${table} (id INT PRIMARY KEY, ${a} VARCHAR(50), v VARCHAR(100) AS (CONCAT(${a}, ${room.text()})) VIRTUAL,
        s VARCHAR(100) AS (CONCAT(${a}, ${room.text()})) STORED, who VARCHAR(100) DEFAULT (CURRENT_USER()), f VARCHAR(9) DEFAULT (REPEAT('a', 2)))`,
      `INSERT INTO ${table} (id, ${a}) VALUES (1, ${room.text()}), (2, NULL)`,
      `CREATE TABLE ${room.name()} (a INT DEFAULT (${spring('default')}))`,
      `CREATE TABLE ${room.name()} (a INT, b INT AS (${both('generated')}))`,
      `CREATE TABLE ${room.name()} (a INT, CHECK (${both('check')} > 0))`,
      `CREATE TABLE ${room.name()} (a LONGBLOB DEFAULT (LOAD_FILE('/etc/passwd')))`,
    ];
  },
  partitions(room) {
    const table = room.name();
    return [
      `CREATE TABLE ${table} (a INT NOT NULL, b VARCHAR(20)) PARTITION BY RANGE (a) (
        PARTITION ${room.name()} VALUES LESS THAN (10) COMMENT = ${room.text()}, PARTITION ${room.name()} VALUES LESS THAN MAXVALUE DATA DIRECTORY = '/tmp')`,
      `INSERT INTO ${table} VALUES (1, 'b'), (50, NULL)`,
      `CREATE TABLE ${room.name()} (a INT) PARTITION BY HASH (a) PARTITIONS 3`,
      `CREATE TABLE ${room.name()} (a INT) PARTITION BY HASH (${both('partition')}) PARTITIONS 2`,
    ];
  },
  trigger(room) {
    const table = room.name();
    const when = `${room.random.pick(['BEFORE', 'AFTER'])} ${room.random.pick(['INSERT', 'UPDATE', 'DELETE'])}`;
    return [
      `CREATE TABLE ${table} (a INT, b VARCHAR(100))`,
      `INSERT INTO ${table} VALUES (1, 'a')`,
      `CREATE ${room.definer()} TRIGGER ${room.name()} ${when} ON ${table} FOR EACH ROW SET @x = ${both('trigger')}, @y = ${room.text()}`,
      `CREATE TRIGGER ${room.name()} ${when} ON ${table} FOR EACH ROW BEGIN ${room.versioned(`SET @x = ${spring('versioned')};`)} SET @y = ${room.text()}; END`,
      `INSERT INTO ${table} VALUES (2, 'b')`,
      `UPDATE ${table} SET a = 3 WHERE a = 1`,
    ];
  },
  event(room) {
    const schedule = room.random.pick([
      'EVERY 1 SECOND',
      "EVERY '1:30' HOUR_MINUTE STARTS '2037-01-01' ENDS '2037-12-31'",
      "AT '2037-01-01 00:00:00'",
    ]);
    const state = room.random.pick(['', 'ENABLE', 'DISABLE', 'DISABLE ON SLAVE']);
    const keep = room.random.pick(['', 'ON COMPLETION PRESERVE', 'ON COMPLETION NOT PRESERVE']);
    const said = room.random.isChosen(0.7) ? `COMMENT ${room.text()}` : '';
    return [
      `CREATE ${room.definer()} EVENT ${room.name()} ON SCHEDULE ${schedule} ${keep} ${state} ${said} DO BEGIN DO ${both('event')}, ${room.text()}; CALL attack(); END`,
      `CREATE EVENT ${room.name()} ON SCHEDULE EVERY 1 SECOND COMMENT ' DO SELECT 1' DO ${room.versioned('SET @a = 1,')} @b = 1`,
    ];
  },
  'event of another time zone'(room) {
    return [
      "SET SESSION time_zone = '+05:30'",
      `CREATE EVENT ${room.name()} ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01 00:00:00' COMMENT ${room.text()} DO SELECT ${room.text()}`,
      "SET SESSION time_zone = '+00:00'",
    ];
  },
  function(room) {
    const [called, parameter] = [room.name(), room.name()];
    const value = room.text();
    const returns = room.random.pick([
      'VARCHAR(200) CHARACTER SET utf8mb4',
      `ENUM(${value}, 'b')`,
      `SET(${value.replaceAll(',', ';')})`,
    ]);
    return [
      `CREATE ${room.definer()} FUNCTION ${called}(${parameter} VARCHAR(20)) RETURNS ${returns} DETERMINISTIC ${room.security()} COMMENT ${room.text()}
        RETURN ${room.versioned(`IF(${both('versioned')}, ${parameter},`)} ${value} ${room.versioned(')')}`,
      `CREATE ${room.definer()} FUNCTION ${room.name()}(a ENUM(${value})) RETURNS INT ${room.security()} COMMENT ${room.text()} RETURN ${both('function')}`,
    ];
  },
  procedure(room) {
    return [
      `CREATE ${room.definer()} PROCEDURE ${room.name()}(IN ${room.name()} TEXT /* ) RETURNS enum('a') */) ${room.security()} COMMENT ${room.text()}
        BEGIN -- ${'x'.repeat(room.random.below(20))}
        DECLARE ${room.name()} INT; DO ${both('procedure')}; CALL attack(); SELECT ${room.text()} AS ${room.name()}; END`,
      `CREATE PROCEDURE ${room.name()}() SELECT _binary'${rawByte(0xff)}${rawByte(0xfe)}a'`,
      `CREATE PROCEDURE ${room.name()}() SELECT 1 INTO DUMPFILE '/tmp/prize'`,
      `CREATE PROCEDURE ${room.name()}() LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE noted`,
      `CREATE PROCEDURE ${room.name()}() COMMENT '' BEGIN END`,
    ];
  },
  'routine whose comment and settings were changed by another client'(room) {
    const called = room.name();
    const first = [`CREATE PROCEDURE ${called}() COMMENT 'a' SELECT ${room.text()}`];
    return [...first, `ALTER PROCEDURE ${called} COMMENT ${room.text()} SQL SECURITY INVOKER`];
  },
  view(room) {
    const [view, over, table] = [room.name(), room.name(), room.name()];
    const algorithm = room.random.pick(['', 'ALGORITHM = MERGE', 'ALGORITHM = TEMPTABLE']);
    return [
      `CREATE TABLE ${table} (a INT, b VARCHAR(100))`,
      `INSERT INTO ${table} VALUES (1, ${room.text()})`,
      `CREATE ${algorithm} ${room.definer()} ${room.security()} VIEW ${view} AS SELECT a, ${both('view')} AS ${room.name()}, ${room.text()} AS t FROM ${table}`,
      `CREATE ${room.security()} VIEW ${over} AS SELECT ${room.name()}.* FROM ${view} AS ${room.name()}`,
      `CREATE VIEW ${over} AS SELECT v.* FROM ${view} AS v WHERE t <> ${room.text()}`,
      `CREATE VIEW ${room.name()} AS SELECT * FROM ${table} WHERE a > 0 WITH CASCADED CHECK OPTION`,
    ];
  },
  'views over windows, JSON and the server’s own tables'(room) {
    return [
      `CREATE VIEW ${room.name()} AS SELECT TABLE_NAME, ROW_NUMBER() OVER (ORDER BY TABLE_NAME) AS n FROM information_schema.TABLES`,
      `CREATE VIEW ${room.name()} AS SELECT JSON_OBJECT(${room.text()}, ${room.text()}) AS j, JSON_VALUE('{"a": 1}', '$.a') AS v`,
      `CREATE VIEW ${room.name()} AS SELECT * FROM mysql.user`,
      `CREATE VIEW ${room.name()} AS SELECT LOAD_FILE('/etc/passwd') AS f, CURRENT_USER() AS c, USER() AS u`,
      `CREATE VIEW ${room.name()} AS WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n, ${room.text()} AS t FROM r`,
    ];
  },
  'view whose table has gone'(room) {
    const table = room.name();
    return [
      `CREATE TABLE ${table} (a INT)`,
      `CREATE VIEW ${room.name()} AS SELECT a, ${spring('broken view')} AS s FROM ${table}`,
      `CREATE FUNCTION ${room.name()}() RETURNS INT RETURN (SELECT MAX(a) FROM ${table})`,
      `DROP TABLE ${table}`,
    ];
  },
  'other engines'(room) {
    const engine = room.random.pick([
      'MyISAM',
      'Aria TRANSACTIONAL = 1',
      'MEMORY',
      'CSV',
      'ARCHIVE',
      'BLACKHOLE',
      'Aria ROW_FORMAT = PAGE',
    ]);
    const table = room.name();
    return [
      `CREATE TABLE ${table} (a INT NOT NULL, b VARCHAR(20) NOT NULL) ENGINE = ${engine}`,
      `INSERT INTO ${table} VALUES (1, 'a'), (2, 'b')`,
    ];
  },
  'tables that lead elsewhere'(room) {
    const part = room.name();
    return [
      `CREATE TABLE ${part} (a INT) ENGINE = MyISAM`,
      `CREATE TABLE ${room.name()} (a INT) ENGINE = MERGE UNION = (${part})`,
      `CREATE TABLE ${room.name()} (a INT) ENGINE = MERGE UNION = (mysql.db, canary.secret)`,
      `CREATE TABLE ${room.name()} (a INT) ENGINE = FEDERATED CONNECTION = 'mysql://root@127.0.0.1:3306/mysql/user'`,
      `CREATE TABLE ${room.name()} (a INT) ENGINE = CONNECT TABLE_TYPE = DOS FILE_NAME = '/etc/passwd'`,
      `CREATE TABLE ${room.name()} (a INT) DATA DIRECTORY = '/tmp'`,
      `CREATE TABLE ${room.name()} (a INT, KEY (a)) ENGINE = MyISAM DATA DIRECTORY = '/tmp' INDEX DIRECTORY = '/tmp'`,
      'CREATE SERVER canary FOREIGN DATA WRAPPER mysql OPTIONS (HOST "127.0.0.1")',
    ];
  },
  'foreign keys'(room) {
    const [parent, child, id, ref] = [room.name(), room.name(), room.name(), room.name()];
    return [
      `CREATE TABLE ${parent} (${id} INT PRIMARY KEY, n INT)`,
      `CREATE TABLE ${child} (id INT PRIMARY KEY, ${ref} INT, CONSTRAINT ${room.name()} FOREIGN KEY (${ref}) REFERENCES ${parent} (${id}) ON DELETE SET NULL)`,
      `INSERT INTO ${parent} VALUES (1, 2)`,
      `INSERT INTO ${child} VALUES (1, 1), (2, NULL)`,
      'SET SESSION foreign_key_checks = 0',
      `INSERT INTO ${child} VALUES (3, 99)`,
      'SET SESSION foreign_key_checks = 1',
    ];
  },
  sequence(room) {
    const [sequence, table] = [room.name(), room.name()];
    const options = room.random.pick([
      '',
      'INCREMENT BY -7 MINVALUE -1000 MAXVALUE 5',
      'START WITH 3 CACHE 2 CYCLE',
      'NOCACHE',
    ]);
    return [
      `CREATE SEQUENCE ${sequence} ${options}`,
      `SELECT NEXTVAL(${sequence})`,
      `CREATE TABLE ${table} (a BIGINT DEFAULT NEXTVAL(${sequence}), b INT)`,
      `INSERT INTO ${table} (b) VALUES (1), (2)`,
    ];
  },
  'history and periods'(room) {
    const table = room.name();
    return [
      `CREATE TABLE ${table} (a INT, b VARCHAR(50)) WITH SYSTEM VERSIONING`,
      `INSERT INTO ${table} VALUES (1, 'a')`,
      `UPDATE ${table} SET a = 2`,
      `CREATE TABLE ${room.name()} (a INT, f DATE, t DATE, PERIOD FOR ${room.name()} (f, t))`,
    ];
  },
  'package of Oracle’s mode'(room) {
    const called = room.name();
    return [
      "SET SESSION sql_mode = 'ORACLE'",
      `CREATE ${room.definer()} PACKAGE ${called} ${room.security()} COMMENT ${room.text().replaceAll('\\\\', '')} AS FUNCTION f RETURN INT; PROCEDURE p; END`,
      `CREATE ${room.definer()} PACKAGE BODY ${called} AS
        FUNCTION f RETURN INT AS BEGIN RETURN ${both('package')}; END; PROCEDURE p AS BEGIN NULL; END; BEGIN NULL; END`,
    ];
  },
  'aggregate and library'(room) {
    return [
      `CREATE AGGREGATE FUNCTION ${room.name()}(a INT) RETURNS INT ${room.security()} COMMENT ${room.text()}
        BEGIN DECLARE s INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN s; LOOP FETCH GROUP NEXT ROW; SET s = s + a; END LOOP; END`,
      `CREATE FUNCTION ${room.name()}(a INT) RETURNS INT COMMENT ${room.text()} RETURN a`,
      "CREATE FUNCTION prize RETURNS STRING SONAME 'prize.so'",
    ];
  },
  'values of every kind'(room) {
    const table = room.name();
    const blob = Array.from({ length: 40 }, () => room.random.below(256).toString(16).padStart(2, '0')).join('');
    return [
      `CREATE TABLE ${table} (id INT UNSIGNED PRIMARY KEY, f FLOAT, d DOUBLE, n DECIMAL(30,10), b BIT(9), raw BLOB, t VARCHAR(99), y YEAR,
        dt DATETIME(6), ti TIME(3), z DATE, g GEOMETRY, bin BINARY(4), j JSON, u VARCHAR(20) CHARACTER SET ucs2) COMMENT = ${room.text()}`,
      `INSERT INTO ${table} VALUES (${room.random.below(1e9)}, 16777217.3, 0.1, -1.5, b'101', X'${blob}', ${room.text()}, 1999,
        '2020-01-31 01:02:03.000004', '-838:59:59', '2020-02-28', ST_GeomFromText('POINT(1 2)'), X'00275C60', '{"k": [1, "\u0041"]}', 'a')`,
    ];
  },
  'rights that are not the owner’s to give'(room) {
    const table = room.name();
    return [
      `CREATE TABLE ${table} (a INT)`,
      `INSERT INTO ${table} VALUES (1)`,
      `GRANT SELECT ON ${table} TO PUBLIC`,
      'CREATE USER drydock_stranger',
      'CREATE ROLE stranger',
      `SET GLOBAL event_scheduler = OFF`,
      'SET SESSION sql_log_bin = 0',
    ];
  },
};

const mysqlItems: Items = {
  'keys over expressions, and what is not shown or not enforced'(room) {
    const [table, a, b] = [room.name(), room.name(), room.name()];
    return [
      `CREATE TABLE ${table} (id INT PRIMARY KEY, ${a} VARCHAR(50), ${b} INT INVISIBLE DEFAULT 7 COMMENT ${room.text()}, j JSON, p POINT NOT NULL SRID 4326,
        KEY ${room.name()} ((CONCAT(${a}, ${room.text()}))) COMMENT ${room.text()}, KEY ${room.name()} ((CAST(j->'$.n' AS UNSIGNED ARRAY))),
        SPATIAL KEY ${room.name()} (p), KEY ${room.name()} (${b}) INVISIBLE, CONSTRAINT ${room.name()} CHECK (${a} = ${room.text()}) NOT ENFORCED)`,
      `INSERT INTO ${table} (id, ${a}, j, p) VALUES (1, ${room.text()}, '{"n": [1, 2]}', ST_SRID(POINT(1, 2), 4326)), (2, NULL, NULL, ST_SRID(POINT(3, 4), 4326))`,
    ];
  },
  'CHECKs and computed values that tell the settings of their session'(room) {
    const [table, a] = [room.name(), room.name()];
    return [
      `CREATE TABLE ${table} (at TIMESTAMP NULL, ${a} VARCHAR(50) DEFAULT (CONCAT(${room.text()}, '')),
        CONSTRAINT ${room.name()} CHECK (at >= '2020-01-01 00:00:00'), CONSTRAINT ${room.name()} CHECK (${a} <> ${room.text()}))`,
      "SET SESSION time_zone = '+05:00'",
      `INSERT INTO ${table} (at, ${a}) VALUES ('2020-01-01 00:00:00', ${room.text()})`,
      `INSERT INTO ${table} (at) VALUES ('2020-01-01 01:00:00'), (NULL)`,
      "SET SESSION time_zone = '+00:00'",
    ];
  },
  'views over JSON and lateral tables'(room) {
    const column = room.name();
    return [
      `CREATE ${room.security()} VIEW ${room.name()} AS SELECT t.${column}, ${both('lateral view')} AS s
        FROM JSON_TABLE('[{"a": 1}]', '$[*]' COLUMNS (${column} INT PATH '$.a' DEFAULT '0' ON EMPTY)) AS t`,
      `CREATE VIEW ${room.name()} AS SELECT o.a, l.b FROM (SELECT 1 AS a) o, LATERAL (SELECT o.a + 1 AS b, ${room.text()} AS t) l`,
    ];
  },
};
const mariadbAlone = ['sequence', 'history and periods', 'package of Oracle’s mode'];

export const itemsOf = (flavour: Flavour): Items => {
  if (flavour === 'mariadb') return items;
  return {
    ...Object.fromEntries(Object.entries(items).filter(([kind]) => !mariadbAlone.includes(kind))),
    ...mysqlItems,
  };
};
