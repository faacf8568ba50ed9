import { randomBytes } from 'node:crypto';
import type { EngineJobs, Moving } from '../engine';
import type { Setup } from './job-setup';
import { makeOwnDatabase } from './own-database';
import { postgresMove } from './postgres-cutover';
import { extensionsOf, requirePostgres } from './postgres-majors';

const trialNames = { database: 'restored', role: 'restorer' } as const;

/** Types a setup for Postgres' program. */
const told = (setup: Setup): { setup: Setup } => ({ setup });

/** Against the snapshot of this id. */
export const compareSetup = (moving: Moving, snapshotId: string | null): Setup => ({
  kind: 'stage',
  stage: 'compare',
  move: postgresMove(moving),
  snapshot_id: snapshotId,
});

export const postgresJobs: EngineJobs = {
  program: 'engines/postgres/job.program.js',
  dump: async ({ databaseId, databaseName, adminUrl, major, expectedBytes }, archive) =>
    told({
      kind: 'dump',
      database_id: databaseId,
      database: { url: adminUrl, databaseName },
      major: requirePostgres(major),
      expected_bytes: expectedBytes,
      archive,
    }),
  load: async (moving, archive) => told({ kind: 'load_dump', move: postgresMove(moving), archive }),
  loadOnTrial: async (kind, { databaseId, scratch: { adminUrl, port, caCertificate } }, archive) => {
    // An ordinary role that owns the empty database fills it without TLS, and may also log in with TLS.
    const { database: databaseName, role: username } = trialNames;
    const password = randomBytes(24).toString('base64url');
    await makeOwnDatabase(adminUrl, { databaseName, username, password, mayMakeRoles: false });
    const url = `postgresql://${username}:${password}@127.0.0.1:${port}/${databaseName}`;
    return told({
      kind,
      database_id: databaseId,
      scratch: { url, admin_url: adminUrl, ca_certificate: caCertificate },
      archive,
    });
  },
  precheck: async ({ databaseName, adminUrl: url, toMajor, trialUrl, freeBytes }) => {
    const secret = randomBytes(32).toString('hex');
    const move = { oldUrl: url, databaseName, path: 'logical' as const, secret, fence: '0' };
    return told({
      kind: 'precheck',
      database: { url, databaseName },
      to_major: requirePostgres(toMajor),
      extensions_of_target: extensionsOf(toMajor),
      free_bytes: freeBytes,
      trial: trialUrl === null ? null : { ...move, targetUrl: trialUrl },
    });
  },
  stage: async (moving, stage) => told({ kind: 'stage', stage, move: postgresMove(moving), snapshot_id: null }),
};
