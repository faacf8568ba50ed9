import path from 'node:path';
import { DatabaseHostError } from '@drydock/agent/database/database-host-error';
import type { Major } from '@drydock/contracts/databases/major';
import type { BoxMount } from '@drydock/process/box';
import { detectIsolation } from '@drydock/process/isolation';
import type { EngineJobs } from './engine';
import type { JobWork } from './job-child';
import type { MysqlServerSetup, MysqlSetup } from './mysql-job-setup';
import { findPrograms, loginOf } from './mysql-session';

/** Where the folder of a server's socket is shown in a job's box. */
const socketFolder = '/mysql-socket';

/** What a job is told of a server, and what its box shows for it: the one socket. */
async function reach(adminUrl: string, major: Major): Promise<{ server: MysqlServerSetup; mounts: readonly BoxMount[] }> {
  const { flavour, release } = await findPrograms(major);
  const login = loginOf(adminUrl);
  if ((await detectIsolation()).kind === 'none') return { server: { login, flavour, release }, mounts: [] };
  const inBox = { ...login, socketPath: path.join(socketFolder, path.basename(login.socketPath)) };
  const mounts = [{ from: path.dirname(login.socketPath), to: socketFolder, writable: true }];
  return { server: { login: inBox, flavour, release }, mounts };
}

async function work(adminUrl: string, major: Major, setupOf: (server: MysqlServerSetup) => MysqlSetup): Promise<JobWork> {
  const { server, mounts } = await reach(adminUrl, major);
  return { setup: setupOf(server), mounts };
}

export const mysqlJobs: EngineJobs = {
  program: 'mysql-job.program.js',
  dump: ({ databaseId, adminUrl, major, expectedBytes }, archive) =>
    work(adminUrl, major, (server) => ({
      kind: 'dump',
      database_id: databaseId,
      server,
      major: String(major),
      expected_bytes: expectedBytes,
      archive,
    })),
  load: ({ targetUrl, upgrade }, archive) => work(targetUrl, upgrade.to_major, (server) => ({ kind: 'load_dump', server, archive })),
  loadOnTrial: (kind, { databaseId, scratch: { adminUrl, port, caCertificate } }, archive) =>
    work(adminUrl, archive.major, (server) => ({ kind, database_id: databaseId, server, port, ca_certificate: caCertificate, archive })),
  stage: (_moving, stage) => {
    if (stage === 'finish') return null;
    throw new DatabaseHostError('upgrade_mismatch', 'a database of this engine is not upgraded in place');
  },
};
