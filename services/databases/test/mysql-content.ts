import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { listFetched } from '@drydock/mysql';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import { type MysqlAddress, type SqlRow, withMysqlClient } from './mysql-client';

/**
 * Runs the text of an SQL file with MariaDB's command-line client, as a customer does. DELIMITER is a command of that
 * client, which no server knows. Rejects with the client's message.
 */
export async function pipeSql({ host, port, user, password, database }: MysqlAddress, sql: string): Promise<void> {
  const [program = '', ...first] = listFetched().find(({ flavour }) => flavour === 'mariadb')?.programs.client ?? [];
  const words = [
    ...first,
    '--no-defaults',
    '--ssl',
    `--host=${host}`,
    `--port=${port}`,
    `--user=${user}`,
    '--default-character-set=utf8mb4',
    database,
  ];
  const client = spawn(program, words, { env: { MYSQL_PWD: password }, stdio: ['pipe', 'ignore', 'pipe'] });
  let said = '';
  client.stderr.on('data', (text: Buffer) => {
    said += text.toString();
  });
  // The client ends at the first refused statement and reads no further, so a failed write to it is ignored.
  client.stdin.on('error', () => undefined).end(sql);
  const code = await new Promise((resolve) => client.once('close', resolve));
  if (code !== 0) throw new Error(said);
}

const rowsOf = async (client: Connection, sql: string, values: readonly unknown[] = []): Promise<SqlRow[]> =>
  (await client.query<RowDataPacket[]>(sql, [...values]))[0];
const quote = (name: unknown): string => `\`${String(name).replaceAll('`', '``')}\``;
const textOf = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString('utf8') : String(value));

const theirs = "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')";
const objectsSql = `SELECT TABLE_SCHEMA AS s, TABLE_NAME AS n, IF(TABLE_TYPE = 'BASE TABLE', 'TABLE', TABLE_TYPE) AS kind FROM information_schema.TABLES WHERE TABLE_SCHEMA ${theirs}
  UNION ALL SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA ${theirs}
  UNION ALL SELECT TRIGGER_SCHEMA, TRIGGER_NAME, 'TRIGGER' FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA ${theirs}
  UNION ALL SELECT EVENT_SCHEMA, EVENT_NAME, 'EVENT' FROM information_schema.EVENTS WHERE EVENT_SCHEMA ${theirs} ORDER BY 1, 3, 2`;

const quotedBytes = (_: string, hex: string): string =>
  ` DEFAULT '${Buffer.from(hex, 'hex').toString('latin1').replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('\0', '\\0')}'`;

/**
 * Removes differences between the spellings of one statement in different versions. From 10.6 on the server writes
 * `utf8mb3` for `utf8`. From 10.11 on it writes every collation, and from 11.8 on it writes binary defaults in hex.
 */
const written = (statement: string): string =>
  statement
    .replaceAll('utf8mb3', 'utf8')
    .replace(/ COLLATE[ =]\w+/g, '')
    .replace(/ DEFAULT x'((?:[0-9a-f]{2})*)'/g, quotedBytes);

/**
 * Reads the whole content of a customer's server. The result has a line with the SHOW CREATE of each object, one for
 * the rows of each table, and one for each right of the user. The checksums of rows are computed here, not by the
 * server.
 */
export const readMysqlContent = (address: MysqlAddress): Promise<string[]> =>
  withMysqlClient(address, async (client) => {
    const lines: string[] = [];
    for (const { s, n, kind } of await rowsOf(client, objectsSql)) {
      const name = `${quote(s)}.${quote(n)}`;
      const [made] = await rowsOf(client, `SHOW CREATE ${String(kind)} ${name}`);
      const text = Object.entries(made ?? {}).filter(([column]) => /^(?:Create |SQL Original)/.test(column));
      lines.push(`${String(kind)} ${name} ${written(textOf(text[0]?.[1]))}`);
      if (kind !== 'TABLE') continue;
      const [rows] = await client.query<RowDataPacket[][]>({
        sql: `SELECT * FROM ${name}`,
        rowsAsArray: true,
        supportBigNumbers: true,
        bigNumberStrings: true,
        dateStrings: true,
      });
      const sums = rows.map((row) => createHash('sha256').update(JSON.stringify(row)).digest('hex')).sort();
      lines.push(`${sums.length} rows of ${name} ${createHash('sha256').update(sums.join()).digest('hex')}`);
    }
    const rights = await rowsOf(client, 'SHOW GRANTS');
    return [...lines, ...rights.flatMap((row) => Object.values(row).map(String)).sort()];
  });

const columnsSql = `SELECT c.TABLE_SCHEMA AS s, c.TABLE_NAME AS t, c.COLUMN_NAME AS n, c.DATA_TYPE AS type, c.COLUMN_TYPE AS whole, c.CHARACTER_MAXIMUM_LENGTH AS length
  FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
  WHERE t.TABLE_TYPE = 'BASE TABLE' AND c.TABLE_SCHEMA ${theirs} AND COALESCE(c.GENERATION_EXPRESSION, '') = '' AND c.EXTRA NOT LIKE '%auto_increment%'
  ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION`;

/** Makes a value for the column. If the type has enough values, each `number` gives a different one. */
function exampleOf({ type, whole, length }: SqlRow, number: number): unknown {
  const room = Math.min(Number(length ?? 20), 2_000);
  switch (type) {
    case 'enum':
    case 'set': {
      const labels = [...String(whole).matchAll(/'((?:[^']|'')*)'/g)].map(([, label = '']) =>
        label.replaceAll("''", "'"),
      );
      return labels[number % labels.length];
    }
    case 'date':
      return `2024-02-0${number}`;
    case 'datetime':
    case 'timestamp':
      return `2024-02-0${number} 10:20:3${number}`;
    case 'time':
      return `10:20:3${number}`;
    case 'binary':
    case 'varbinary':
    case 'blob':
    case 'tinyblob':
    case 'mediumblob':
    case 'longblob':
      return Buffer.from([number, 0, 255, 92, 39, 10]).subarray(0, room);
    case 'char':
    case 'varchar':
    case 'text':
    case 'tinytext':
    case 'mediumtext':
    case 'longtext':
      return room < 8
        ? String(number).padEnd(Math.min(room, 2), 'x').slice(0, room)
        : `n${number} '\\"é`.slice(0, room);
    default:
      return number;
  }
}

/**
 * Inserts rows into each table as its owner. Foreign keys are not checked, as in an import. `rows` is the number of
 * inserted rows. `empty` has the tables that accepted none.
 */
export const fillMysqlTables = (address: MysqlAddress, perTable: number): Promise<{ rows: number; empty: string[] }> =>
  withMysqlClient(address, async (client) => {
    await client.query('SET foreign_key_checks = 0');
    const tables = new Map<string, SqlRow[]>();
    for (const column of await rowsOf(client, columnsSql)) {
      const table = `${quote(column['s'])}.${quote(column['t'])}`;
      tables.set(table, [...(tables.get(table) ?? []), column]);
    }
    const empty: string[] = [];
    let rows = 0;
    for (const [table, columns] of tables) {
      const names = columns.map(({ n }) => quote(n)).join(', ');
      let taken = 0;
      for (let number = 1; number <= perTable; number += 1) {
        const values = columns.map((column) => exampleOf(column, number));
        const isTaken = await client.query(`INSERT INTO ${table} (${names}) VALUES (?)`, [values]).then(
          () => true,
          () => false,
        );
        taken += isTaken ? 1 : 0;
      }
      if (taken === 0) empty.push(table);
      rows += taken;
    }
    return { rows, empty };
  });
