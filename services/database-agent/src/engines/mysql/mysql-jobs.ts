import path from 'node:path';
import type { Major } from '@drydock/contracts/databases/major';
import type { BoxMount } from '@drydock/process/box';
import { detectIsolation } from '@drydock/process/isolation';
import type { JobWork } from '../../jobs/job-child';
import type { EngineJobs } from '../engine';
import type { MysqlServerSetup, MysqlSetup } from './mysql-job-setup';
import { findPrograms, loginOf } from './mysql-session';

/** Where the folder of a server's socket is shown in a job's box. */
const socketFolders = { only: '/mysql-socket', old: '/mysql-socket-old', target: '/mysql-socket-target' } as const;

interface Reached {
  server: MysqlServerSetup;
  mounts: readonly BoxMount[];
}

/** The server as a job is told of it, and the one socket folder that its box shows. */
async function reach(adminUrl: string, major: Major, as: keyof typeof socketFolders = 'only'): Promise<Reached> {
  const { flavour, release } = await findPrograms(major);
  const login = loginOf(adminUrl);
  if ((await detectIsolation()).kind === 'none') return { server: { login, flavour, release }, mounts: [] };
  const inBox = { ...login, socketPath: path.join(socketFolders[as], path.basename(login.socketPath)) };
  const mounts = [{ from: path.dirname(login.socketPath), to: socketFolders[as], writable: true }];
  return { server: { login: inBox, flavour, release }, mounts };
}

async function work(
  adminUrl: string,
  major: Major,
  setupOf: (server: MysqlServerSetup) => MysqlSetup,
): Promise<JobWork> {
  const { server, mounts } = await reach(adminUrl, major);
  return { setup: setupOf(server), mounts };
}

export const mysqlJobs: EngineJobs = {
  program: 'engines/mysql/mysql-job.program.js',
  dump: ({ databaseId, adminUrl, major, expectedBytes }, archive) =>
    work(adminUrl, major, (server) => ({
      kind: 'dump',
      database_id: databaseId,
      server,
      major: String(major),
      expected_bytes: expectedBytes,
      archive,
    })),
  load: ({ targetUrl, upgrade }, archive) =>
    work(targetUrl, upgrade.to_major, (server) => ({ kind: 'load_dump', server, archive })),
  loadOnTrial: (kind, { databaseId, scratch: { adminUrl, port, caCertificate } }, archive) =>
    work(adminUrl, archive.major, (server) => ({
      kind,
      database_id: databaseId,
      server,
      port,
      ca_certificate: caCertificate,
      archive,
    })),
  precheck: async ({ adminUrl, major, toMajor, trialUrl, freeBytes }) => {
    const old = await reach(adminUrl, major, 'old');
    const trial = trialUrl === null ? null : await reach(trialUrl, toMajor, 'target');
    const setup: MysqlSetup = {
      kind: 'precheck',
      old: old.server,
      trial: trial?.server ?? null,
      free_bytes: freeBytes,
    };
    return { setup, mounts: [...old.mounts, ...(trial?.mounts ?? [])] };
  },
  // A dump is one stream: the schema comes with the rows, and the load makes the statistics.
  stage: async ({ oldUrl, targetUrl, fromMajor, upgrade }, stage) => {
    if (stage === 'copy_schema' || stage === 'finish') return null;
    const [old, target] = [await reach(oldUrl, fromMajor, 'old'), await reach(targetUrl, upgrade.to_major, 'target')];
    const setup: MysqlSetup = { kind: 'stage', stage, old: old.server, target: target.server, secret: upgrade.secret };
    return { setup, mounts: [...old.mounts, ...target.mounts] };
  },
};
