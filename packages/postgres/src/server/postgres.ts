import type { StdioOptions } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {
  type Answer,
  type ChildExit,
  commandLineOf,
  detectIsolation,
  endProcess,
  type GuardedChild,
  handOver,
  listProcessesIn,
  type ProcessProof,
  proveProcess,
  type ServerHome,
  serverAccount,
  settleHome,
  settlePassword,
  settleSocketFolder,
  spawnGuarded,
  spawnInBox,
  startOnFreePort,
  waitUntilAnswering,
  waitUntilLeft,
} from '@drydock/process';
import pg from 'pg';
import { ScramClient } from '../session/scram-client';
import { bySocket } from '../session/session';
import { initCluster, postgresEnvironment } from './init-cluster';
import { defaultMajor, findPostgresPrograms } from './native-postgres';

/**
 * The folder of one embedded Postgres. `<home>/<major>` is the data directory, so that several majors can exist side by
 * side.
 */
export interface PostgresFolder extends ServerHome {
  dataDir: string;
  passwordFile: string;
}

/** Decides where the data of `folder` is. It is elsewhere when the server's account cannot enter the folder. */
export function settlePostgresFolder(folder: string, major: number): PostgresFolder {
  const { home, isElsewhere } = settleHome(folder);
  return { home, dataDir: path.join(home, String(major)), passwordFile: path.join(home, 'password'), isElsewhere };
}

export interface PostgresOptions {
  /** Holds `<major>/` (the data) and `password` (0600). Created when missing. */
  folder: string;
  /** The port. A free one is taken when it is missing. */
  port?: number;
  major?: number;
  /**
   * The uid of a server in which customers work. As root, the server runs under this account, and nothing else does.
   * For an ordinary user, the server runs in a box instead. When left out or null: no box, and as root the account is
   * nobody's.
   */
  account?: number | null;
  /**
   * Settings whose value is a file outside of the data folder, by name. The server's account must be able to read that
   * file. A box shows this file and nothing beside it.
   */
  files?: Readonly<Record<string, string>>;
  /**
   * The most private memory of one session. A statement that needs more fails with 53200. Without this limit, one line
   * of SQL with a value of a gigabyte keeps both cores of the machine busy for seconds.
   */
  sessionBytes?: number;
  /**
   * Whether the server listens only on a Unix socket and on no port. Any process on this machine could reach a port: it
   * could use up the server's connections, or take over the port while the server is down and answer in its place. The
   * option `port` then only names the socket.
   */
  isSocketOnly?: boolean;
  /**
   * A cluster for tests: smaller and without fsync. A power cut loses it, but a kill -9 loses nothing.
   * DRYDOCK_EPHEMERAL=1, which tests set, makes every cluster such a cluster.
   */
  isEphemeral?: boolean;
  /** postgresql.conf settings beyond ours. */
  settings?: Readonly<Record<string, string>>;
  /** Gets what the server writes to its log. */
  onLog?: (text: string) => void;
}

export interface PostgresServer {
  port: number;
  /** The superuser, in the database `postgres`, through the socket where there is one. */
  adminUrl: string;
  /** The folder of the Unix socket, or null unless `isSocketOnly`. */
  socketFolder: string | null;
  proof: ProcessProof;
  /** The folder that really has the data. Tell the user when `isElsewhere`. */
  dataDir: string;
  isElsewhere: boolean;
  exited: Promise<ChildExit>;
  /** Fast shutdown: open transactions are rolled back, and a checkpoint is written. */
  stop(): Promise<void>;
}

/** Much longer than recovery after a kill -9 of a busy cluster, which takes seconds. */
const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;
/** A server that cannot bind its port ends long before this. */
const bindTimeoutMs = 5_000;

/**
 * Starts Postgres on loopback TCP or a Unix socket, with scram-sha-256 and `wal_level=logical`. Creates its cluster at
 * the first start. A leftover server of an earlier run on the same data is ended first, after proof that it is ours.
 * Resolves when the server answers a query. @throws with the end of the server's output when it does not start
 */
export function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  return startOnFreePort(options.port, (port) => startOn(port, options));
}

async function startOn(port: number, options: PostgresOptions): Promise<PostgresServer> {
  const major = options.major ?? defaultMajor;
  const programs = findPostgresPrograms(major);
  const folder = settlePostgresFolder(options.folder, major);
  const password = settlePassword(folder.passwordFile);
  const account = options.account ?? null;
  if (fs.existsSync(path.join(folder.dataDir, 'PG_VERSION'))) {
    await clearLeftoverPostgres(folder.dataDir);
  } else await initCluster(programs.initdb, folder.dataDir, password);
  await handOver(folder.dataDir, account);
  const { sessionBytes } = options;
  const socketFolder = options.isSocketOnly === true ? settleSocketFolder(folder.home, account, socketNames) : null;
  const byPort = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  const adminUrl = socketFolder === null ? byPort : bySocket(byPort, socketFolder);
  const files = { ...options.files, ...(socketFolder !== null && { hba_file: writeRules(folder.home) }) };
  const args = ['-p', String(port), ...settingsArguments(settingsOf(options))];
  const child = await spawnServer({
    program: programs.postgres,
    dataDir: folder.dataDir,
    args,
    account,
    sessionBytes,
    socketFolder,
    files,
  });
  const stop = (): Promise<void> => child.stop('SIGINT', stopTimeoutMs);
  try {
    await waitUntilAnswering(child, {
      label: 'Postgres',
      timeoutMs: startTimeoutMs,
      bindTimeoutMs,
      ask: () => ask(adminUrl),
      onLog: options.onLog,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const { dataDir, isElsewhere } = folder;
  return { port, adminUrl, socketFolder, proof: child.proof, dataDir, isElsewhere, exited: child.exited, stop };
}

const socketNames = { longest: '.s.PGSQL.65535', prefix: '.s.PGSQL.' };

/**
 * The rules for a cluster that is reached only through its Unix socket, in the form of pg_hba.conf: every client proves
 * a password. A server that still listens on a port, because it was configured otherwise, refuses every client there.
 */
const socketOnlyRules = [
  '# type  database     user  address  method',
  'host    all          all   all      reject',
  'local   replication  all            reject',
  'local   all          all            scram-sha-256',
  '',
].join('\n');

/** The rules are outside of the server's data, where its account can read them but not change them. */
function writeRules(home: string): string {
  const file = path.join(home, 'pg_hba.conf');
  fs.writeFileSync(file, socketOnlyRules);
  fs.chmodSync(file, 0o644);
  return file;
}

/** The paths of a server's files in its box. */
const dataInBox = '/postgres/data';
const programsInBox = '/postgres/programs';
const socketInBox = '/postgres/socket';
const fileInBox = (setting: string): string => `/postgres/files/${setting}`;
/**
 * The size of the box's /dev/shm, in bytes. Parallel queries exchange rows there. It takes memory only when it is used.
 */
const sharedMemoryBytes = 2 ** 30;

interface Spawned {
  program: string;
  dataDir: string;
  args: readonly string[];
  account: number | null;
  sessionBytes: number | undefined;
  socketFolder: string | null;
  files: Readonly<Record<string, string>>;
}

/**
 * A server with customers in it runs under its own account as root, and otherwise in a box. So a shell in it reaches
 * nothing but the server's own data.
 */
async function spawnServer({
  program,
  dataDir,
  args,
  account,
  sessionBytes,
  socketFolder,
  files,
}: Spawned): Promise<GuardedChild> {
  const stdio = ['ignore', 'ignore', 'pipe'] satisfies StdioOptions;
  const isolation = account === null ? null : await detectIsolation();
  if (isolation?.kind !== 'user_namespaces') {
    // Shared buffers do not count.
    const limits = { memoryBytes: sessionBytes, signalOnOrphan: 'SIGINT' as const };
    const options = { ...serverAccount(account), env: postgresEnvironment, cwd: '/', stdio, ...limits };
    return spawnGuarded(
      program,
      ['-D', dataDir, ...args, ...settingsArguments({ ...socketSetting(socketFolder), ...files })],
      options,
    );
  }
  const shownFiles = Object.entries(files).map(([setting, from]) => ({ setting, from, to: fileInBox(setting) }));
  const shownSettings = {
    ...socketSetting(socketFolder && socketInBox),
    ...Object.fromEntries(shownFiles.map(({ setting, to }) => [setting, to])),
  };
  return spawnInBox({
    isolation,
    command: [path.join(programsInBox, 'bin/postgres'), '-D', dataInBox, ...args, ...settingsArguments(shownSettings)],
    env: postgresEnvironment,
    account: null,
    mounts: [
      { from: dataDir, to: dataInBox, writable: true },
      { from: path.resolve(program, '../..'), to: programsInBox, writable: false },
      ...(socketFolder === null ? [] : [{ from: socketFolder, to: socketInBox, writable: true }]),
      ...shownFiles.map(({ from, to }) => ({ from, to, writable: false })),
    ],
    workdir: '/',
    limits: { tmpBytes: sharedMemoryBytes, ...(sessionBytes === undefined ? {} : { memoryBytes: sessionBytes }) },
    stdio,
    onOrphan: 'SIGKILL',
  });
}

const socketSetting = (folder: string | null): Record<string, string> =>
  folder === null ? {} : { unix_socket_directories: folder };

const settingsArguments = (settings: Readonly<Record<string, string>>): string[] =>
  Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

function settingsOf(options: PostgresOptions): Record<string, string> {
  return {
    listen_addresses: options.isSocketOnly === true ? '' : '127.0.0.1',
    unix_socket_directories: '',
    password_encryption: 'scram-sha-256',
    wal_level: 'logical',
    max_connections: '200',
    // A failed statement is reported to its client. The log would keep the password of an ALTER ROLE, also when a
    // function ran it.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    // The processes of a statement share files in the server's own folder. Otherwise they share memory of the machine,
    // of which a statement may take as much as it likes, until no server has any.
    ...(options.sessionBytes === undefined ? {} : { dynamic_shared_memory_type: 'mmap' }),
    ...(options.isEphemeral === true || process.env['DRYDOCK_EPHEMERAL'] === '1'
      ? { fsync: 'off', full_page_writes: 'off' }
      : {}),
    ...options.settings,
  };
}

async function ask(adminUrl: string): Promise<Answer> {
  const client = new ScramClient({ connectionString: adminUrl, connectionTimeoutMillis: 2000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return 'ready';
  } catch (error) {
    return error instanceof pg.DatabaseError && error.code === '28P01' ? 'wrong password' : 'not yet';
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** How long a leftover postmaster has for each of: fast shutdown, immediate shutdown, kill. */
const graceMs = 10_000;

/**
 * Makes a data directory free to start on. A postmaster of an earlier run that still works on it is ended. Its orphaned
 * backends are waited for, because a second server would destroy the data while they run. A postmaster.pid whose pid
 * now belongs to another program is removed, because Postgres would refuse to start.
 */
async function clearLeftoverPostgres(dataDir: string): Promise<void> {
  const proof = findPostmaster(dataDir);
  if (proof !== null && !(await endProcess(proof, ['SIGINT', 'SIGQUIT', 'SIGKILL'], graceMs))) {
    throw new Error(`Postgres (pid ${proof.pid}) of an earlier run on ${dataDir} cannot be ended`);
  }
  // Backends end by themselves a moment after their postmaster died. They are recognised by their working directory.
  await waitUntilLeft(dataDir, graceMs);
  // On other systems nothing has searched for backends. Postgres itself does, by what the file says. It cannot start
  // only when the file names the pid of an unrelated program.
  if (process.platform === 'linux' || proveProcess(readPidFile(dataDir) ?? 0) !== null) {
    fs.rmSync(path.join(dataDir, 'postmaster.pid'), { force: true });
  }
}

/**
 * The postmaster that works on this data directory, proven by its working directory and its command line. Null when
 * there is none. The number in postmaster.pid is not used: a server in a box writes the pid that it has inside the box.
 */
export function findPostmaster(dataDir: string): ProcessProof | null {
  const pid =
    process.platform === 'linux' ? (listProcessesIn(dataDir).find(isPostmaster) ?? null) : readPidFile(dataDir);
  const proof = pid === null ? null : proveProcess(pid);
  const isOurs =
    pid !== null &&
    isPostmaster(pid) &&
    (process.platform === 'linux' || commandLineOf(pid).includes(`-D ${dataDir} `));
  return isOurs ? proof : null;
}

function readPidFile(dataDir: string): number | null {
  const pidFile = path.join(dataDir, 'postmaster.pid');
  if (!fs.existsSync(pidFile)) return null;
  const pid = Number.parseInt(fs.readFileSync(pidFile, 'utf8'), 10);
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

/** A backend of Postgres shows its activity instead of its command line. */
function isPostmaster(pid: number): boolean {
  const commandLine = commandLineOf(pid);
  return path.basename(commandLine.split(' ')[0] ?? '') === 'postgres' && commandLine.includes(' -D ');
}
