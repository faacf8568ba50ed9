import type { StdioOptions } from 'node:child_process';
import fs from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import {
  type Answer,
  type ChildExit,
  commandLineOf,
  detectIsolation,
  endProcess,
  type GuardedChild,
  handOver,
  KeptServer,
  type KeptServerOptions,
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
import { defaultMajor, findPostgresPrograms, initCluster, postgresEnvironment } from './native-postgres';

/** The folders of an embedded Postgres. Several majors can exist side by side. */
export interface PostgresFolder extends ServerHome {
  dataDir: string;
  passwordFile: string;
}

/** Returns where the data of `folder` is. If the server's account cannot enter the folder, the data is elsewhere. */
export function settlePostgresFolder(folder: string, major: number): PostgresFolder {
  const { home, isElsewhere } = settleHome(folder);
  return { home, dataDir: path.join(home, String(major)), passwordFile: path.join(home, 'password'), isElsewhere };
}

interface PostgresOptions {
  /** The folder of `<major>/` (the data) and `password` (0600). It is created if it is missing. */
  folder: string;
  /** The port. Default: a free one. */
  port?: number;
  major?: number;
  /**
   * The uid of a server that customers use. If this process is root, the server runs under this account, which no other
   * process has. Otherwise the server runs in a box (packages/process), or without isolation on a machine that can make
   * no box. With null there is no box, and a server that root starts runs as `nobody`.
   */
  account?: number | null;
  /**
   * Files outside of the data folder, by the name of the setting whose value is the file's path. The server's account
   * must be able to read the file. A box contains the file, but not its folder.
   */
  files?: Readonly<Record<string, string>>;
  /**
   * The limit of a session's private memory in bytes. A statement that needs more fails with SQLSTATE 53200. Without
   * the limit, a statement with a value of a gigabyte keeps two cores busy for seconds.
   */
  sessionBytes?: number;
  /**
   * True to listen only on a Unix socket. Any process of the machine could use up the connections of a port. It could
   * also take the port while the server is down, and answer as the server. The option `port` then only names the
   * socket.
   */
  isSocketOnly?: boolean;
  /**
   * True for a server without fsync. It may lose data in a power cut, but not after a kill -9. DRYDOCK_EPHEMERAL=1,
   * which tests set, has this effect on every cluster.
   */
  isEphemeral?: boolean;
  /** Further settings of postgresql.conf. They override the built-in ones. */
  settings?: Readonly<Record<string, string>>;
  onLog?: (text: string) => void;
}

export interface PostgresServer {
  port: number;
  /** The superuser's URL of the database `postgres`, through the socket if there is one. */
  adminUrl: string;
  /** The folder of the Unix socket, or null if the server listens on a port. */
  socketFolder: string | null;
  proof: ProcessProof;
  /**
   * The folder of the data. With `isElsewhere` it is not within the requested folder, and the user should be told where
   * it is.
   */
  dataDir: string;
  isElsewhere: boolean;
  exited: Promise<ChildExit>;
  /** Stops the server by a fast shutdown: transactions are rolled back, and a checkpoint is written. */
  stop(): Promise<void>;
}

/** The time in which a started server must answer, including its recovery after a kill -9. */
const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;
/** A server that cannot bind its port ends long before this time. */
const bindTimeoutMs = 5_000;

/**
 * Starts Postgres on loopback TCP or a Unix socket, with scram-sha-256 and `wal_level=logical`. The first start creates
 * the cluster. A server that an earlier run left on the same data is ended first. Resolves when the server answers a
 * query. If the server does not start, the error has the end of its output.
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
 * pg_hba.conf of a cluster with only a Unix socket: every client needs a password. If a changed configuration makes the
 * server listen on a port, it refuses all clients of the port.
 */
const socketOnlyRules = [
  '# type  database     user  address  method',
  'host    all          all   all      reject',
  'local   replication  all            reject',
  'local   all          all            scram-sha-256',
  '',
].join('\n');

/** Writes the rules outside of the server's data, so that the server's account can read but not change them. */
function writeRules(home: string): string {
  const file = path.join(home, 'pg_hba.conf');
  fs.writeFileSync(file, socketOnlyRules);
  fs.chmodSync(file, 0o644);
  return file;
}

/** Paths of a server's files within its box. */
const dataInBox = '/postgres/data';
const programsInBox = '/postgres/programs';
const socketInBox = '/postgres/socket';
const fileInBox = (setting: string): string => `/postgres/files/${setting}`;
/**
 * The size of the box's /dev/shm in bytes. Parallel queries exchange rows there unless `sessionBytes` is set. Only the
 * used part takes memory.
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
 * Starts the server process. A server with customers runs under its own account if this process is root, and otherwise
 * in a box, if the machine can make one. A shell in the server then cannot reach the data of another server.
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
    // `memoryBytes` does not count shared buffers.
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
    // Failed statements are not logged, because an ALTER ROLE, even within a function, may contain a password. The
    // client still gets the error.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    // The processes of a parallel statement exchange rows in files of the server's own folder. By default they would
    // use shared memory of the machine, and a single statement could use up the memory of all servers.
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

/** The time that a leftover server gets after each signal. */
const graceMs = 10_000;

/**
 * Ends a leftover server of an earlier run on a data folder, and waits for its backends, because a second server would
 * destroy the data. A postmaster.pid that names another program is removed, because Postgres would refuse to start.
 */
async function clearLeftoverPostgres(dataDir: string): Promise<void> {
  const proof = findPostmaster(dataDir);
  if (proof !== null && !(await endProcess(proof, ['SIGINT', 'SIGQUIT', 'SIGKILL'], graceMs))) {
    throw new Error(`Postgres (pid ${proof.pid}) of an earlier run on ${dataDir} cannot be ended`);
  }
  // Backends end shortly after their server. Their working directory identifies them.
  await waitUntilLeft(dataDir, graceMs);
  // On systems other than Linux, Postgres itself needs postmaster.pid to look for backends. So the file is removed
  // there only if its pid belongs to another program.
  if (process.platform === 'linux' || proveProcess(readPidFile(dataDir) ?? 0) !== null) {
    fs.rmSync(path.join(dataDir, 'postmaster.pid'), { force: true });
  }
}

/**
 * Finds the server that works on a data folder, proved by its working directory and command line. Returns null if there
 * is none. The pid in postmaster.pid is not used on Linux, because a server in a box writes its pid within the box.
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

/** Tells whether the process is a server and not a backend, which shows its activity instead of a command line. */
function isPostmaster(pid: number): boolean {
  const commandLine = commandLineOf(pid);
  return path.basename(commandLine.split(' ')[0] ?? '') === 'postgres' && commandLine.includes(' -D ');
}

/**
 * The limit of private memory for a customer's session in bytes. A statement that needs more fails and does not harm
 * the machine. The limit is twice the memory for building an index during a site's restore.
 */
export const customerSessionBytes = 512 * 2 ** 20;

export interface KeptPostgresOptions extends Omit<KeptServerOptions<PostgresServer>, 'start' | 'facts'> {
  folder: string;
  major: number;
  /** Returns the options. It is called at each start, because a server's purpose can change. */
  serverOptions: () => Omit<PostgresOptions, 'folder' | 'major'>;
}

/**
 * A Postgres server that is restarted whenever it ends. Its URL is for the database `postgres` with the platform's
 * role.
 */
export class KeptPostgres extends KeptServer<PostgresServer> {
  private readonly place: { folder: string; major: number };

  constructor({ folder, major, serverOptions, ...kept }: KeptPostgresOptions) {
    super({ ...kept, facts: { folder, major }, start: () => startPostgres({ ...serverOptions(), folder, major }) });
    this.place = { folder, major };
  }

  /** Stops the server and removes its data. */
  async remove(): Promise<void> {
    await this.stop();
    const { folder, major } = this.place;
    const { home } = settlePostgresFolder(folder, major);
    await rm(home, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }
}
