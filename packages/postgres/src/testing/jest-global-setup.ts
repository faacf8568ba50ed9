import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ownerRole, publishSharedCluster } from './test-cluster';

declare global {
  var stopDrydockTestCluster: (() => Promise<void>) | undefined;
}

/**
 * Starts the temporary cluster that all test files of a run share. A file gets its own database from `testPostgres`.
 */
export default async function startSharedCluster(): Promise<void> {
  // The servers that tests start need not survive a power cut.
  process.env['DRYDOCK_EPHEMERAL'] = '1';
  // The scale multiplies time-outs, because no test may depend on the machine's speed. A test of a time-out sets a
  // scale itself.
  process.env['DRYDOCK_TIMEOUT_SCALE'] ??= '10';
  buildWhatRunsOutsideJest();
  // The import comes after the build, because jest resolves workspace packages to their build output here.
  const { startPostgres } = await import('@drydock/postgres');
  const { default: pg } = await import('pg');
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-test-postgres-'));
  chmodSync(folder, 0o711); // as root, the server runs as nobody, which must be able to enter the folder
  // A dump locks all tables at once, and `npm run chaos` has databases with 50,000 tables.
  const locks = process.env['DRYDOCK_TESTS'] === 'chaos' ? { max_locks_per_transaction: '200' } : {};
  // From here on, all processes of the run copy a prepared cluster instead of running initdb.
  process.env['DRYDOCK_PREPARED_CLUSTERS'] = folder;
  const server = await startPostgres({
    folder,
    isEphemeral: true,
    settings: { max_connections: '400', autovacuum: 'off', ...locks },
  });
  globalThis.stopDrydockTestCluster = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const ownerPassword = randomBytes(16).toString('hex');
  const admin = new pg.Client({ connectionString: server.adminUrl });
  await admin.connect();
  await admin.query(`CREATE ROLE "${ownerRole}" LOGIN PASSWORD '${ownerPassword}'`);
  await admin.end();
  publishSharedCluster({ adminUrl: server.adminUrl, ownerPassword });
}

/**
 * Builds the programs that run outside jest, because `npx jest` may run in a clone without a build. After a build, tsc
 * has nothing to do.
 */
function buildWhatRunsOutsideJest(): void {
  const root = path.resolve(__dirname, '../../../..');
  const tsc = path.join(root, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-b', 'packages/postgres'], { cwd: root, stdio: 'inherit' });
}
