import type { Flavour } from '../src/engines/list-engines';

const name = '`odd ``name\n;-- x`';

/** The statements with which a customer fills two schemas, one statement in each string. */
export function oddContent(flavour: Flavour): string[] {
  return [
    `CREATE TABLE shop.kinds (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, f FLOAT, d DOUBLE, n DECIMAL(30,10), b BIT(9), raw BLOB, j JSON,
      t VARCHAR(40), l VARCHAR(40) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET ucs2, e ENUM('a','b''c'), s SET('x','y'), y YEAR,
      dt DATETIME(6), ts TIMESTAMP NULL, ti TIME(3), z DATE, g GEOMETRY, bin BINARY(4), big BIGINT UNSIGNED,
      doubled INT GENERATED ALWAYS AS (y + 1) VIRTUAL, tripled INT GENERATED ALWAYS AS (y + 2) STORED, KEY (t)) AUTO_INCREMENT = 100`,
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    `INSERT INTO shop.kinds (id, f, d, n, b, raw, j, t, l, u, e, s, y, dt, ts, ti, z, g, bin, big) VALUES
      (0, 16777217.3, 0.1, -12345678901234567890.0123456789, b'101010101', X'00FF27225C0A1A', '{"k": ["😀", 1.5]}', '😀''\\\\', 'ä', 'ж', 'b''c', 'x,y', 1999,
       '0000-00-00', NULL, '-838:59:59', '2020-02-31', ST_GeomFromText('POINT(1 2)'), X'00000001', 18446744073709551615)`,
    `INSERT INTO shop.kinds (f, d, t) VALUES (3.1415927, 1e308, NULL), (1.1, -0e0, '')`,
    `INSERT INTO shop.kinds (id, raw) SELECT 5000 + a.n * 10 + b.n, REPEAT(CHAR(a.n, b.n), 9000) FROM (SELECT 1 n UNION SELECT 2 UNION SELECT 3) a, (SELECT 4 n UNION SELECT 5) b`,
    `CREATE TABLE shop.${name} (${name} INT COMMENT '*/ DROP DATABASE shop; -- ', PRIMARY KEY (${name})) COMMENT = '/*!50003 x */ \\\\'''`,
    `INSERT INTO shop.${name} VALUES (1), (2)`,
    `CREATE TABLE other.child (id INT PRIMARY KEY, kind INT UNSIGNED, FOREIGN KEY (kind) REFERENCES shop.kinds (id) ON DELETE CASCADE)`,
    'INSERT INTO other.child VALUES (1, 0)',
    `CREATE TABLE shop.defaulted (id INT PRIMARY KEY, none_given BINARY(5) NOT NULL DEFAULT '', high VARBINARY(9) DEFAULT X'FF00C3BC275C', word VARBINARY(9) DEFAULT 'it''s',
      kind ENUM('a','b''c') CHARACTER SET binary DEFAULT 'b''c', e ENUM('ä','b') CHARACTER SET latin1 DEFAULT 'ä', s SET('x','y') DEFAULT 'x,y',
      made VARBINARY(40) DEFAULT (CONCAT('a', 'b')), without VARBINARY(4), b BIT(8) DEFAULT b'11111111', größe INT COMMENT 'ж 😀') COMMENT = 'ß'`,
    'CREATE TABLE shop.noted (who VARCHAR(200), what VARCHAR(200))',
    'CREATE TABLE shop.plain (id INT) ENGINE = MyISAM',
    'INSERT INTO shop.plain VALUES (1), (1)',
    "SET SESSION sql_mode = 'ANSI_QUOTES'",
    `CREATE FUNCTION shop.f(a INT) RETURNS INT DETERMINISTIC RETURN CASE WHEN "a" > 1 THEN a ELSE /*! 0 + */ 1 END`,
    "SET SESSION sql_mode = ''",
    `CREATE PROCEDURE shop.p() SQL SECURITY INVOKER BEGIN INSERT INTO noted VALUES (CURRENT_USER(), 'p; -- $$ \\\\ ü'); END`,
    'SET NAMES latin1',
    "CREATE FUNCTION shop.größe() RETURNS VARCHAR(10) CHARACTER SET utf8mb4 DETERMINISTIC RETURN 'ä'",
    "CREATE VIEW shop.ansicht AS SELECT 'ß' AS wört",
    "CREATE PROCEDURE shop.würde() COMMENT 'ä' SELECT 'ä'",
    "CREATE EVENT other.über ON SCHEDULE EVERY 1 HOUR DISABLE COMMENT 'ä' DO SELECT 'ä'",
    'SET NAMES utf8mb4',
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "CREATE PROCEDURE shop.backslash() COMMENT 'a\\b' SELECT 1",
    "SET SESSION sql_mode = ''",
    'CREATE TABLE shop.Moved (other INT)',
    'CREATE VIEW shop.b AS SELECT shop.f(1) AS one',
    "CREATE SQL SECURITY INVOKER VIEW shop.a AS SELECT one, 'ß' AS wört FROM shop.b",
    'CREATE VIEW other.broken AS SELECT id FROM shop.plain',
    `CREATE TRIGGER shop.fires BEFORE INSERT ON shop.kinds FOR EACH ROW INSERT INTO noted VALUES (CURRENT_USER(), 'trigger')`,
    `CREATE EVENT shop.ticks ON SCHEDULE EVERY 1 SECOND DO INSERT INTO noted VALUES (CURRENT_USER(), 'event')`,
    'CREATE EVENT other.rests ON SCHEDULE EVERY 1 HOUR DISABLE DO SELECT 1',
    'ALTER TABLE shop.plain RENAME shop.moved',
    ...(flavour === 'mariadb'
      ? ['CREATE SEQUENCE shop.numbers START WITH 5 INCREMENT BY 5', 'SELECT NEXTVAL(shop.numbers)']
      : []),
  ];
}

/** The platform runs these statements before the customer gets access. */
export const customerAccounts = [
  'CREATE DATABASE shop CHARACTER SET latin1',
  'CREATE DATABASE other CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
  "CREATE USER owner IDENTIFIED BY 'Owner-1'",
  "CREATE USER 'read''er'@'%' IDENTIFIED BY 'Reader-1' REQUIRE SSL",
  'GRANT ALL PRIVILEGES ON shop.* TO owner',
  'GRANT ALL PRIVILEGES ON other.* TO owner WITH GRANT OPTION',
];
export const laterGrants = [
  "GRANT SELECT (f, d), INSERT ON shop.kinds TO 'read''er'@'%'",
  "GRANT EXECUTE ON FUNCTION shop.f TO 'read''er'@'%'",
];
