import type { StdioOptions } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {
  type Answer,
  type BoxMount,
  type ChildExit,
  commandLineOf,
  detectIsolation,
  endProcess,
  type GuardedChild,
  handOver,
  listProcessesIn,
  type ProcessProof,
  proveProcess,
  serverAccount,
  settleHome,
  settlePassword,
  settleSocketFolder,
  spawnGuarded,
  spawnInBox,
  waitUntilAnswering,
  waitUntilLeft,
} from '@drydock/process';
import mysql from 'mysql2/promise';
import { isEveryServerEphemeral } from '../config';
import type { Engine } from '../engines/list-engines';
import {
  initDataFolder,
  placeOf,
  type ServerPaths,
  type ServerPlace,
  type SettingsChoice,
  serverEnvironment,
  serverSettings,
  settingsArguments,
} from './data-folder';

/** Paths of the files. For a replica, `authority` has signed the certificate of the server that the replica copies. */
export interface TlsFiles {
  certificate: string;
  key: string;
  authority?: string;
}

export interface MysqlOptions {
  engine: Engine;
  /**
   * The folder of `<flavour>-<version>/` (the data), `password` (0600) and `socket/`. It is created if it is missing.
   */
  folder: string;
  /**
   * The uid of a server that customers use. If this process is root, the server runs under this account, which no other
   * process has. Otherwise the server runs in a box (packages/process), if the machine allows boxes. With null there is
   * no box, and a server that root starts runs as `nobody`.
   */
  account?: number | null;
  /** A TCP address, with TLS required, besides the Unix socket. Without an address the server listens on no port. */
  listen?: { address: string; port: number; tls: TlsFiles };
  /** True to run events. `SET GLOBAL event_scheduler` changes it later. Default: false. */
  isEventSchedulerOn?: boolean;
  /** The server id of replication. Two servers that replicate need different ids. */
  serverId?: number;
  bufferPoolBytes?: number;
  /** False to turn off MariaDB's binary log, which replication needs. MySQL's binary log is always on. */
  hasBinaryLog?: boolean;
  /**
   * The memory limit of all sessions and in-memory tables, without the buffers. A statement that exceeds it fails as
   * out of memory. Default: no limit.
   */
  sessionsBytes?: number;
  /**
   * True for a server that may lose data in a power cut, but not after a kill -9. DRYDOCK_EPHEMERAL=1, which tests set,
   * has this effect on every server.
   */
  isEphemeral?: boolean;
  /** Further settings, by their names on the command line. They override the built-in ones. */
  settings?: Readonly<Record<string, string>>;
  onLog?: (text: string) => void;
}

/** The login of an account through the server's socket, as options of mysql2. */
export interface MysqlLogin {
  socketPath: string;
  user: string;
  password: string;
}

export interface MysqlServer {
  engine: Engine;
  /**
   * The login of `root@localhost` through the Unix socket. It has all rights, so no statement of a customer runs with
   * it.
   */
  admin: MysqlLogin;
  socketPath: string;
  proof: ProcessProof;
  /** The folder of the data. If `isElsewhere`, it is not below the requested folder, and the user should be told. */
  dataDir: string;
  isElsewhere: boolean;
  exited: Promise<ChildExit>;
  /** Shuts the server down: transactions are rolled back, and data is written. */
  stop(): Promise<void>;
}

/** The limit is much longer than a busy server's recovery after a kill -9, which takes seconds. */
const startTimeoutMs = 120_000;
const stopTimeoutMs = 60_000;
const socketName = 'mysql.sock';
/** The smallest size with which all versions can serve a schema of some hundred tables. */
const defaultBufferPoolBytes = 64 * 2 ** 20;
/**
 * The part of the memory limit that is neither for the buffer pool nor for sessions. An idle server uses 124 MB of it
 * for 15 threads, caches and the log.
 */
const ownBytes = 256 * 2 ** 20;

/**
 * Starts MariaDB or MySQL on a Unix socket, by default with durable writes, a binary log and GTIDs. The first start
 * creates the data folder. A server that an earlier run left on the same data is ended first. Resolves when the server
 * answers a query. If the server does not start, the error has the end of its output.
 */
export async function startMysql(options: MysqlOptions): Promise<MysqlServer> {
  const { engine, folder, account = null } = options;
  const { home, isElsewhere } = settleHome(folder);
  const password = settlePassword(path.join(home, 'password'));
  const place = placeOf(home, engine);
  if (fs.existsSync(place.data)) await clearLeftoverMysql(place.data);
  else await initDataFolder(engine, place, password);
  await handOver(path.dirname(place.data), account);
  const socketFolder = settleSocketFolder(home, account, { longest: `${socketName}.lock`, prefix: socketName });
  const child = await spawnServer(options, place, socketFolder);
  const socketPath = path.join(socketFolder, socketName);
  const admin = { socketPath, user: 'root', password };
  const stop = (): Promise<void> => child.stop('SIGTERM', stopTimeoutMs);
  try {
    await waitUntilAnswering(child, {
      label: engine.label,
      timeoutMs: startTimeoutMs,
      ask: () => ask(admin),
      onLog: options.onLog,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    engine,
    admin,
    socketPath,
    proof: child.proof,
    dataDir: place.data,
    isElsewhere,
    exited: child.exited,
    stop,
  };
}

/** Paths of a server's files within its box. */
const inBox = {
  data: '/mysql/data',
  tmp: '/mysql/tmp',
  socket: `/mysql/socket/${socketName}`,
  certificate: '/mysql/certificate.pem',
  key: '/mysql/key.pem',
  authority: '/mysql/authority.pem',
};

/**
 * Starts the server process. A server with customers runs under its own account if this process is root, and otherwise
 * in a box, if the machine allows boxes. A shell in the server then reaches no other customer's data.
 */
async function spawnServer(options: MysqlOptions, place: ServerPlace, socketFolder: string): Promise<GuardedChild> {
  const { engine, account = null, listen } = options;
  const stdio = ['ignore', 'ignore', 'pipe'] satisfies StdioOptions;
  const isolation = account === null ? null : await detectIsolation();
  const { sessionsBytes, bufferPoolBytes = defaultBufferPoolBytes } = options;
  const limits = sessionsBytes === undefined ? {} : { memoryBytes: ownBytes + bufferPoolBytes + sessionsBytes };
  const [program = '', ...first] = engine.programs.server;
  if (isolation?.kind !== 'user_namespaces') {
    const paths = { ...place, socket: path.join(socketFolder, socketName) };
    const args = [
      ...first,
      ...settingsArguments(serverSettings(engine, paths, choiceOf(options, listen?.tls ?? null))),
    ];
    const spawning = {
      ...serverAccount(account),
      env: serverEnvironment,
      cwd: '/',
      stdio,
      signalOnOrphan: 'SIGTERM' as const,
    };
    return spawnGuarded(program, args, { ...spawning, ...limits });
  }
  const paths: ServerPaths = inBox;
  const args = settingsArguments(
    serverSettings(engine, paths, choiceOf(options, listen === undefined ? null : tlsInBox(listen.tls))),
  );
  const readOnly = (from: string, to: string): BoxMount => ({ from, to, writable: false });
  return spawnInBox({
    isolation,
    command: [program, ...first, ...args],
    env: serverEnvironment,
    account: null,
    mounts: [
      { from: place.data, to: inBox.data, writable: true },
      { from: place.tmp, to: inBox.tmp, writable: true },
      { from: socketFolder, to: path.dirname(inBox.socket), writable: true },
      ...(engine.root === '/' ? [] : [readOnly(engine.root, engine.root)]),
      ...(listen === undefined
        ? []
        : [readOnly(listen.tls.certificate, inBox.certificate), readOnly(listen.tls.key, inBox.key)]),
      ...(listen?.tls.authority === undefined ? [] : [readOnly(listen.tls.authority, inBox.authority)]),
    ],
    workdir: '/',
    limits,
    stdio,
    onOrphan: 'SIGKILL',
  });
}

const tlsInBox = ({ authority }: TlsFiles): TlsFiles => {
  const { certificate, key, authority: shown } = inBox;
  return { certificate, key, ...(authority !== undefined && { authority: shown }) };
};

function choiceOf(options: MysqlOptions, tls: SettingsChoice['tls']): SettingsChoice {
  return {
    listen: options.listen ?? null,
    tls,
    isEventSchedulerOn: options.isEventSchedulerOn ?? false,
    serverId: options.serverId ?? 1,
    bufferPoolBytes: options.bufferPoolBytes ?? defaultBufferPoolBytes,
    hasBinaryLog: options.hasBinaryLog ?? true,
    isEphemeral: options.isEphemeral === true || isEveryServerEphemeral(),
    further: options.settings ?? {},
  };
}

async function ask(admin: MysqlLogin): Promise<Answer> {
  try {
    const connection = await mysql.createConnection({ ...admin, connectTimeout: 2_000 });
    await connection.query('SELECT 1');
    await connection.end();
    return 'ready';
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ER_ACCESS_DENIED_ERROR'
      ? 'wrong password'
      : 'not yet';
  }
}

/** The time that a leftover server gets after each signal. */
const graceMs = 20_000;

/**
 * Ends a server that an earlier run left on a data folder, because two servers would destroy the data. The working
 * directory and command line prove that a process is such a server.
 */
async function clearLeftoverMysql(data: string): Promise<void> {
  for (const proof of findServers(data)) {
    if (!(await endProcess(proof, ['SIGTERM', 'SIGKILL'], graceMs))) {
      throw new Error(`The server (pid ${proof.pid}) of an earlier run on ${data} cannot be ended`);
    }
  }
  await waitUntilLeft(data, graceMs);
}

function findServers(data: string): ProcessProof[] {
  const isServer = (pid: number): boolean =>
    commandLineOf(pid)
      .split(' ')
      .some((word) => ['mariadbd', 'mysqld'].includes(path.basename(word)));
  return listProcessesIn(data)
    .filter(isServer)
    .map(proveProcess)
    .filter((proof) => proof !== null);
}
