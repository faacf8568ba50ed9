import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pgDatabase } from '@drydock/database/pg-database';
import { poolConfig } from '@drydock/database/pool';
import type { Database } from '@drydock/database/sql';
import { testPostgres } from '@drydock/test-kit/postgres';
import pg from 'pg';

export interface TestDatabase {
  database: Database<pg.PoolClient>;
  pool: pg.Pool;
  url: string;
  /** What was asked of it so far: the text of each statement, and BEGIN for each transaction. */
  statements: string[];
  close(): Promise<void>;
}

const kitSql = ['idempotency', 'audit'].map((name) => readFileSync(path.join(__dirname, `../prisma/${name}.sql`), 'utf8'));

/** A database of the test's own with the kit's tables and those of `extraSql`. */
export async function startTestDatabase(...extraSql: string[]): Promise<TestDatabase> {
  const postgres = await testPostgres({ sql: [...kitSql, ...extraSql] });
  const pool = new pg.Pool(poolConfig(postgres.url));
  const statements: string[] = [];
  const close = async (): Promise<void> => {
    await pool.end();
    await postgres.close();
  };
  return { database: recording(pgDatabase(pool), statements), pool, url: postgres.url, statements, close };
}

/** The same database, writing down what is asked of it. */
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
