import pg from 'pg';
import { connectionSettings } from './migration-adapter';

/**
 * Our advisory locks: one for a whole deployment, and one for a single script. The engine's own lock, 72707369, is a
 * third.
 */
const deploymentLock = 1_685_221_231;
const scriptLock = 1_685_221_232;

/** Written into `logs` of a script that was applied completely, by the script's own transaction. */
const appliedWhole = 'applied whole';

const unfinished = `"finished_at" IS NULL AND "rolled_back_at" IS NULL`;

/**
 * A migration's script as one query. Postgres applies it completely or not at all, and it records that where the next
 * deployment looks.
 */
export const wholeScript = (script: string): string =>
  [
    `SELECT pg_advisory_xact_lock(${scriptLock});`,
    script,
    `;UPDATE "_prisma_migrations" SET "logs" = '${appliedWhole}' WHERE ${unfinished};`,
  ].join('\n');

/**
 * Runs `deploy` while no other process deploys to this database. First it settles what an earlier process had started
 * when it died: a script that reached its end counts as applied, and one that did not has left nothing and is applied
 * again. When Postgres still works on it, that is waited for.
 */
export async function deployAlone<T>(databaseUrl: string, deploy: () => Promise<T>): Promise<T> {
  const client = new pg.Client(connectionSettings(databaseUrl));
  // When this connection ends, so does the lock. The deployment itself has connections of its own.
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(`SELECT pg_advisory_lock(${deploymentLock})`);
    await settleInterrupted(client);
    return await deploy();
  } finally {
    await client.end();
  }
}

async function settleInterrupted(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`SELECT to_regclass('"_prisma_migrations"') IS NOT NULL AS there`);
  if (rows[0]?.there !== true) return;
  // One simple query is one transaction.
  await client.query(`
    SELECT pg_advisory_xact_lock(${scriptLock});
    UPDATE "_prisma_migrations" SET "finished_at" = now(), "applied_steps_count" = 1 WHERE ${unfinished} AND "logs" = '${appliedWhole}';
    UPDATE "_prisma_migrations" SET "rolled_back_at" = now() WHERE ${unfinished};`);
}
