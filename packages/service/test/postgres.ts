import { readFileSync } from 'node:fs';
import path from 'node:path';
import { testPostgres } from '@drydock/postgres/testing/postgres';
import type pg from 'pg';
import { openPool, pgDatabase } from '../src/database/pool';
import type { Database } from '../src/database/sql';

export interface TestDatabase {
  database: Database<pg.PoolClient>;
  pool: pg.Pool;
  url: string;
  /** The statements of `database.sql` so far: the text of each one, and BEGIN for each transaction. */
  statements: string[];
  /** Makes the next transaction commit, but reject with the error of a lost connection. */
  loseNextCommit(): void;
  close(): Promise<void>;
}

const kitSql = ['idempotency', 'audit'].map((name) =>
  readFileSync(path.join(__dirname, `../prisma/${name}.sql`), 'utf8'),
);

/** Starts a database for one test, with the package's tables and those of `extraSql`. */
export async function startTestDatabase(...extraSql: string[]): Promise<TestDatabase> {
  const postgres = await testPostgres({ sql: [...kitSql, ...extraSql] });
  const pool = openPool(postgres.url);
  pool.on('error', () => undefined); // Idle connections fail when the database is dropped.
  const statements: string[] = [];
  const close = async (): Promise<void> => {
    await pool.end();
    await postgres.close();
  };
  const losing = loseCommits(pgDatabase(pool));
  const { loseNextCommit } = losing;
  return {
    database: recording(losing.database, statements),
    pool,
    url: postgres.url,
    statements,
    loseNextCommit,
    close,
  };
}

function loseCommits(database: Database<pg.PoolClient>) {
  let losesNext = false;
  const transaction: Database<pg.PoolClient>['transaction'] = async (work) => {
    const result = await database.transaction(work);
    if (!losesNext) return result;
    losesNext = false;
    throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
  };
  const loseNextCommit = (): void => {
    losesNext = true;
  };
  return { database: { ...database, transaction }, loseNextCommit };
}

/** Wraps the database and records the statements that are run through `sql`, and each BEGIN. */
function recording(database: Database<pg.PoolClient>, statements: string[]): Database<pg.PoolClient> {
  return {
    transaction: (work) => {
      statements.push('BEGIN');
      return database.transaction(work);
    },
    sql: (tx) => ({
      query: (text, values) => {
        statements.push(text);
        return database.sql(tx).query(text, values);
      },
    }),
  };
}
