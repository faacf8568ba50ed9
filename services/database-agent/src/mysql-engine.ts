import { startMysql } from '@drydock/mysql/server/mysql';
import { settleHome } from '@drydock/process/server-folder';
import { scaled } from '@drydock/process/time-out-scale';
import type { Cutover, Engine, Moving, Start } from './engine';
import { authenticationMs, buffersOf, connectionsOf, placesOf } from './instance-settings';
import {
  copyLogin,
  endMysqlSession,
  letIn,
  lockOutMysql,
  makeMysqlDatabase,
  readMysqlPorts,
  readMysqlSize,
  settleMysqlAccess,
} from './mysql-access';
import { mysqlJobs } from './mysql-jobs';
import { findPrograms, mysqlUrl, openMysql } from './mysql-session';
import { writeServerFiles } from './server-files';
import { mysqlWire } from './wire';

/** The most that a session may ask for in one go: memory of the server is memory of the machine. */
const sessionMaxima = {
  'maximum-sort-buffer-size': 64 * 2 ** 20,
  'maximum-join-buffer-size': 64 * 2 ** 20,
  'maximum-read-buffer-size': 16 * 2 ** 20,
  'maximum-read-rnd-buffer-size': 16 * 2 ** 20,
  'maximum-bulk-insert-buffer-size': 64 * 2 ** 20,
  'maximum-max-heap-table-size': 64 * 2 ** 20,
  'maximum-tmp-table-size': 64 * 2 ** 20,
};

const bufferPoolMbMin = 64;

async function start({ folder, major, port, account, tls, purpose }: Start) {
  const engine = await findPrograms(major);
  const { certificate, key } = writeServerFiles(settleHome(folder).home, account, {
    certificate: ['server.crt', tls.certificate],
    key: ['server.key', tls.key],
  });
  const server = await startMysql({
    engine,
    folder,
    account,
    listen: { address: '127.0.0.1', port, tls: { certificate, key } },
    bufferPoolBytes: Math.max(bufferPoolMbMin, buffersOf(purpose.size)) * 2 ** 20,
    settings: {
      'max-connections': String(connectionsOf(purpose.size)),
      'connect-timeout': String(Math.ceil(scaled(authenticationMs) / 1000)),
      'read-only': purpose.isFrozen ? 'ON' : 'OFF',
      ...Object.fromEntries(Object.entries(sessionMaxima).map(([name, value]) => [name, String(value)])),
    },
  });
  return { adminUrl: mysqlUrl(server.admin), exited: server.exited, stop: server.stop };
}

/** A restore's: the target was filled before, and of the old instance the login goes over. */
async function openCutover({ oldUrl, targetUrl, username }: Moving): Promise<Cutover> {
  const old = await openMysql(oldUrl);
  const target = await openMysql(targetUrl).catch(async (error: unknown) => {
    await old.close();
    throw error;
  });
  return {
    readOpening: async () => [],
    seal: () => lockOutMysql(old, username),
    bringLevel: async (lap) => {
      await copyLogin(oldUrl, target, username);
      lap('login');
    },
    snapshot: null,
    open: () => letIn(target, username),
    close: async () => void (await Promise.all([old.close(), target.close()])),
  };
}

export const mysqlEngine: Engine = {
  wire: mysqlWire,
  jobs: mysqlJobs,
  assertInstalled: async (major) => void (await findPrograms(major)),
  start,
  makeOwnDatabase: (adminUrl, { size, ...wanted }) => makeMysqlDatabase(adminUrl, { ...wanted, sessionsMax: placesOf(size) }),
  readSize: readMysqlSize,
  readKnownPorts: readMysqlPorts,
  endBackend: endMysqlSession,
  settleAccess: settleMysqlAccess,
  readLimit: async () => -1,
  openCutover,
  takeBack: ({ oldUrl, ...moving }) => settleMysqlAccess(oldUrl, { ...moving, isOpen: true }),
};
