import path from 'node:path';
import { DatabaseHostError } from '@drydock/agent/database';
import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import {
  compareServers,
  Moment,
  ReplicatedSwitch,
  type Side,
  startMysql,
  sweepTransferAccounts,
  TransferError,
} from '@drydock/mysql';
import { type BoxMount, detectIsolation, scaled, settleHome } from '@drydock/process';
import { mysqlWire } from '../../endpoint/wire';
import type { JobWork } from '../../jobs/job-child';
import type { Cutover, Engine, EngineJobs, Moving, Start } from '../engine';
import { authenticationMs, buffersOf, connectionsOf, placesOf, writeServerFiles } from '../instance-settings';
import type { MysqlServerSetup, MysqlSetup } from './mysql-job.program';
import {
  applyMysqlAccess,
  copyLogin,
  endMysqlSession,
  findPrograms,
  giveAllRights,
  isMysqlReadOnly,
  keepMysqlReadOnly,
  letIn,
  lockOutMysql,
  loginOf,
  makeMysqlDatabase,
  mysqlUrl,
  openMysql,
  readMysqlPorts,
  readMysqlSize,
  trimBinaryLog,
} from './mysql-session';

/**
 * Upper limits, in bytes, of settings that a session may change for itself. They limit the memory that one session can
 * take from the machine.
 */
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

/**
 * The memory that all sessions together may use, in bytes: as much as the size promises. The limit is for their sum,
 * because one process serves all sessions.
 */
const sessionsBytesOf = ({ ram_gb }: Start['purpose']['size']): number => Math.max(1, ram_gb) * 2 ** 30;

async function start({ folder, major, port, account, tls, purpose }: Start) {
  const engine = await findPrograms(major);
  const files = writeServerFiles(settleHome(folder).home, account, {
    certificate: ['server.crt', tls.certificate],
    key: ['server.key', tls.key],
    authority: ['authority.crt', tls.authority],
  });
  const server = await startMysql({
    engine,
    folder,
    account,
    listen: { address: '127.0.0.1', port, tls: files },
    // The port is unique on this machine. So all servers on it have different ids, which replication between them
    // requires.
    serverId: port,
    bufferPoolBytes: Math.max(bufferPoolMbMin, buffersOf(purpose.size)) * 2 ** 20,
    sessionsBytes: sessionsBytesOf(purpose.size),
    settings: {
      'max-connections': String(connectionsOf(purpose.size)),
      'connect-timeout': String(Math.ceil(scaled(authenticationMs) / 1000)),
      'read-only': purpose.isFrozen ? 'ON' : 'OFF',
      ...Object.fromEntries(Object.entries(sessionMaxima).map(([name, value]) => [name, String(value)])),
    },
  });
  const { admin, dataDir, exited, proof, stop } = server;
  // The folder above the data contains the temporary files too.
  return { adminUrl: mysqlUrl(admin), exited, stop, proof, diskFolder: path.dirname(dataDir) };
}

/** The two servers of an upgrade, each with the administrator's login and its release. */
async function sidesOf({
  oldUrl,
  targetUrl,
  fromMajor,
  upgrade,
  ...own
}: Moving): Promise<{ old: Side; target: Side }> {
  const [from, to] = [await findPrograms(fromMajor), await findPrograms(upgrade.to_major)];
  const owner = { user: own.username, schema: own.databaseName };
  return {
    old: { admin: loginOf(oldUrl), release: from.release, owner },
    target: { admin: loginOf(targetUrl), release: to.release, owner },
  };
}

/**
 * Opens the parts of a cutover that only an upgrade needs: replication from the old instance, and the snapshot for the
 * comparison. Null for a restore, whose target was loaded from the backup.
 */
async function openUpgrade(moving: Moving): Promise<{ replicated: ReplicatedSwitch; moment: Moment } | null> {
  if (moving.upgrade.path === 'restore') return null;
  const sides = await sidesOf(moving);
  const replicated = await ReplicatedSwitch.open(sides).catch(refuse);
  try {
    return { replicated, moment: await Moment.open(sides.target) };
  } catch (error) {
    await replicated.close();
    throw error;
  }
}

/**
 * Opens a cutover. For a restore as for an upgrade, the cutover copies the customer's login from the old instance to
 * the target, and gives the customer every right on its database there. If the new instance is above its limit, the
 * next check of its disk takes some rights away again.
 */
async function openCutover(moving: Moving): Promise<Cutover> {
  const { oldUrl, targetUrl, databaseName, username } = moving;
  const upgrade = await openUpgrade(moving);
  const opened = await Promise.allSettled([openMysql(oldUrl), openMysql(targetUrl)]);
  const sessions = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const close = async (): Promise<void> =>
    void (await Promise.all([...sessions.map((session) => session.close()), upgrade?.replicated.close()]));
  const [old, target] = sessions;
  if (old === undefined || target === undefined) {
    await Promise.all([close(), upgrade?.moment.close()]);
    throw new DatabaseHostError('instance_down', 'an instance does not answer');
  }
  return {
    readOpening: async () => ({ opening: [], grants: null }),
    seal: () => lockOutMysql(old, username),
    bringLevel: async (lap) => {
      await upgrade?.replicated.bringLevel().catch(refuse);
      lap('replication');
      await copyLogin(oldUrl, target, username);
      await giveAllRights(target, { databaseName, username });
      lap('login');
    },
    snapshot: upgrade?.moment ?? null,
    open: () => letIn(target, username),
    close,
  };
}

function refuse(error: unknown): never {
  if (error instanceof TransferError)
    throw new DatabaseHostError('not_caught_up', `${error.code}: ${error.message}`, { cause: error });
  throw error;
}

/** The folders in a job's box that show the sockets of servers. */
const socketFolders = { only: '/mysql-socket', old: '/mysql-socket-old', target: '/mysql-socket-target' } as const;

interface Reached {
  server: MysqlServerSetup;
  mounts: readonly BoxMount[];
}

/** Describes a server for the input of a job, with the folder of its socket that the job's box has to show. */
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

const mysqlJobs: EngineJobs = {
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
  // `copy_schema` has nothing to do, because `copy_data` copies the schema with the rows. `finish` has nothing to do,
  // because InnoDB updates its statistics by itself.
  stage: async ({ oldUrl, targetUrl, fromMajor, upgrade }, stage) => {
    if (stage === 'copy_schema' || stage === 'finish') return null;
    const [old, target] = [await reach(oldUrl, fromMajor, 'old'), await reach(targetUrl, upgrade.to_major, 'target')];
    const setup: MysqlSetup = { kind: 'stage', stage, old: old.server, target: target.server, secret: upgrade.secret };
    return { setup, mounts: [...old.mounts, ...target.mounts] };
  },
};

export const mysqlEngine: Engine = {
  wire: mysqlWire,
  jobs: mysqlJobs,
  assertInstalled: async (major) => void (await findPrograms(major)),
  start,
  makeOwnDatabase: (adminUrl, { size, ...wanted }) =>
    makeMysqlDatabase(adminUrl, { ...wanted, sessionsMax: placesOf(size) }),
  readSize: readMysqlSize,
  // Only a file of the log has this name. The files of a table `binlog` count as data: none of their extensions begins
  // with a digit, and a dot in the name of a table or a schema is `@002e` in the name of its file.
  logFiles: 'binlog.[0-9]*',
  trimLog: trimBinaryLog,
  isReadOnly: isMysqlReadOnly,
  keepReadOnly: keepMysqlReadOnly,
  readKnownPorts: readMysqlPorts,
  endBackend: endMysqlSession,
  applyAccess: applyMysqlAccess,
  readLimit: async () => -1,
  openCutover,
  compare: async (moving, snapshot, { progress }) => {
    const compared = await compareServers(
      await sidesOf(moving),
      snapshot instanceof Moment ? snapshot : null,
      progress,
    );
    return { ...compared, recomputed: [], differed: [] };
  },
  takeBack: async ({ oldUrl, ...moving }) => {
    await applyMysqlAccess(oldUrl, { ...moving, isOpen: true });
    await sweepTransferAccounts(loginOf(oldUrl), flavourOf(moving.upgrade.to_major) === 'mysql' ? 'mysql' : 'mariadb');
  },
};
