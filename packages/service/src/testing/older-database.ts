import pg from 'pg';

/** The rows and sequences of a database at one moment. */
export interface Moment {
  /** Rows as JSON, which keeps every number as it is written. */
  tables: readonly { name: string; rows: string }[];
  sequences: readonly { name: string; last: string; isCalled: boolean }[];
}

/** Reads the content that a backup of this database would have now. `adminUrl` is the superuser's. */
export async function takeMoment(adminUrl: string): Promise<Moment> {
  return withAdmin(adminUrl, async (admin) => {
    await admin.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const tables: { name: string; rows: string }[] = [];
    for (const name of await listNames(admin, 'r')) {
      const { rows } = await admin.query<{ rows: string }>(
        `SELECT coalesce(json_agg(t), '[]')::text AS rows FROM ${name} t`,
      );
      tables.push({ name, rows: rows[0]?.rows ?? '[]' });
    }
    const sequences: { name: string; last: string; isCalled: boolean }[] = [];
    for (const name of await listNames(admin, 'S')) {
      const { rows } = await admin.query<{ last: string; called: boolean }>(
        `SELECT last_value::text AS last, is_called AS called FROM ${name}`,
      );
      sequences.push({ name, last: rows[0]?.last ?? '1', isCalled: rows[0]?.called ?? false });
    }
    await admin.query('COMMIT');
    return { tables, sequences };
  });
}

/**
 * Restores the database to a moment that {@link takeMoment} has read. Everything that works on the database must be
 * stopped before.
 */
export async function putBack(adminUrl: string, { tables, sequences }: Moment): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    await admin.query('BEGIN');
    // No trigger runs and no foreign key is checked, as in a real restore.
    await admin.query('SET LOCAL session_replication_role = replica');
    await admin.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}`);
    for (const { name, rows } of tables) {
      await admin.query(
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, $1::json)`,
        [rows],
      );
    }
    for (const { name, last, isCalled } of sequences)
      await admin.query('SELECT setval($1::regclass, $2::bigint, $3)', [name, last, isCalled]);
    await admin.query('COMMIT');
  });
}

/** Lists the relations of one kind in the schema `public`, by their quoted names with schema. */
async function listNames(admin: pg.Client, kind: 'r' | 'S'): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    `SELECT format('%I.%I', nspname, relname) AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE relkind = $1 AND nspname = 'public' ORDER BY 1`,
    [kind],
  );
  return rows.map(({ name }) => name);
}

async function withAdmin<T>(adminUrl: string, work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}
