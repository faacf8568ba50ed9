import pg from 'pg';

interface TableContent {
  name: string;
  /** The quoted names of the columns, without generated columns, which cannot be inserted. */
  columns: string;
  /** The rows as a JSON array. */
  rows: string;
}

/** The content of a service's database at one moment. */
export interface Moment {
  tables: readonly TableContent[];
  sequences: readonly { name: string; last: string; isCalled: boolean }[];
}

async function inTransaction<T>(url: string, mode: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`BEGIN ${mode}`);
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } finally {
    await client.end();
  }
}

/** Lists each table after the tables that it references. Rows can be inserted in this order. */
const tablesSql = `
  WITH RECURSIVE own AS (SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace),
  reach (oid, depth) AS (
    SELECT oid, 0 FROM own
    UNION ALL SELECT c.conrelid, depth + 1 FROM reach JOIN pg_constraint c ON c.confrelid = reach.oid AND c.contype = 'f' AND c.conrelid <> c.confrelid
    WHERE depth < 20)
  SELECT oid::regclass::text AS name,
    (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
     WHERE attrelid = reach.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns
  FROM reach GROUP BY oid ORDER BY max(depth), 1`;

/** Reads the database in one snapshot of Postgres, while the service keeps working. */
export const readMoment = (url: string): Promise<Moment> =>
  inTransaction(url, 'ISOLATION LEVEL REPEATABLE READ READ ONLY', async (client) => {
    const tables: TableContent[] = [];
    for (const table of (await client.query<{ name: string; columns: string }>(tablesSql)).rows) {
      const { rows } = await client.query<{ rows: string }>(
        `SELECT coalesce(json_agg(t), '[]')::text AS rows FROM ${table.name} t`,
      );
      tables.push({ ...table, rows: rows[0]?.rows ?? '[]' });
    }
    if (tables.length === 0) throw new Error('the database has no tables');
    const names = `SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace`;
    const sequences: { name: string; last: string; isCalled: boolean }[] = [];
    for (const { name } of (await client.query<{ name: string }>(names)).rows) {
      const state = `SELECT last_value AS last, is_called AS "isCalled" FROM ${name}`;
      const { rows } = await client.query<{ last: string; isCalled: boolean }>(state);
      sequences.push({ name, last: rows[0]?.last ?? '1', isCalled: rows[0]?.isCalled ?? false });
    }
    return { tables, sequences };
  });

/** Replaces the content by the content of an earlier moment. Ends the sessions of the service, which must be frozen. */
export const putBack = (url: string, { tables, sequences }: Moment): Promise<void> =>
  inTransaction(url, '', async (client) => {
    // By default a session of this login works as the role that owns the database. That role may not end the service's
    // sessions, but the login itself may.
    await client.query('SET LOCAL ROLE NONE');
    const others =
      'FROM pg_stat_activity WHERE datname = current_database() AND usename = session_user AND pid <> pg_backend_pid()';
    await client.query(`SELECT pg_terminate_backend(pid, 5000) ${others}`);
    await client.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}`);
    for (const { name, columns, rows } of tables) {
      await client.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
      const content = `SELECT ${columns} FROM json_populate_recordset(NULL::${name}, $1::json)`;
      await client.query(`INSERT INTO ${name} (${columns}) OVERRIDING SYSTEM VALUE ${content}`, [rows]);
      await client.query(`ALTER TABLE ${name} ENABLE TRIGGER USER`);
    }
    for (const { name, last, isCalled } of sequences)
      await client.query('SELECT setval($1::regclass, $2::bigint, $3)', [name, last, isCalled]);
  });
