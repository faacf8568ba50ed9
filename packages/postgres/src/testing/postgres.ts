import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { ensureTemplate, type TemplateContent } from './template-database';
import { ownerRole, ownerUrl, readSharedCluster, withDatabase } from './test-cluster';

export interface TestPostgres {
  /** The URL of the database's owner, who is no superuser. A service gets it as DATABASE_URL. */
  url: string;
  /** The superuser's URL of the same database. */
  adminUrl: string;
  /** The superuser's URL of the database `postgres` of the same cluster. */
  clusterUrl: string;
  /** Drops the database. Sessions that are still open after five seconds are ended. */
  close(): Promise<void>;
}

/**
 * Creates a database for a test file by cloning a template with the content. It takes about 30 ms if the template
 * exists. A suite calls it in `beforeAll`, and `close` in `afterAll`.
 */
export async function testPostgres(content: TemplateContent = {}): Promise<TestPostgres> {
  const cluster = readSharedCluster();
  const name = `test_${randomBytes(8).toString('hex')}`;
  await withAdmin(cluster.adminUrl, async (admin) => {
    const template = await ensureTemplate(admin, content);
    await admin.query(`CREATE DATABASE "${name}" TEMPLATE "${template}" OWNER "${ownerRole}"`);
  });
  return {
    url: ownerUrl(cluster, name),
    adminUrl: withDatabase(cluster.adminUrl, name),
    clusterUrl: cluster.adminUrl,
    close: () => withAdmin(cluster.adminUrl, (admin) => dropWhenLeft(admin, name)),
  };
}

/** The SQLSTATE for a database with open sessions. */
const inUseCode = '55006';

/**
 * Drops a database, and waits up to five seconds for its sessions. A pool's `end` resolves before its sessions have
 * ended, and a session that is ended by force would fail its test.
 */
async function dropWhenLeft(admin: pg.Client, name: string): Promise<void> {
  await admin.query(`DROP DATABASE IF EXISTS "${name}"`).catch(async (error: unknown) => {
    if (!(error instanceof pg.DatabaseError) || error.code !== inUseCode) throw error;
    await admin.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
  });
}

async function withAdmin(adminUrl: string, work: (admin: pg.Client) => Promise<void>): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}
