import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { makePrivateFolder, serverAccount, spawnGuarded } from '@drydock/process';
import { compareVersions, type Engine } from '../engines/list-engines';

/** Paths as the server sees them. In a box, they differ from the paths on the machine. */
export interface ServerPaths {
  data: string;
  tmp: string;
  socket: string;
}

export interface SettingsChoice {
  /** The TCP address, or null for none. */
  listen: { address: string; port: number } | null;
  tls: { certificate: string; key: string; authority?: string } | null;
  isEventSchedulerOn: boolean;
  serverId: number;
  bufferPoolBytes: number;
  hasBinaryLog: boolean;
  isEphemeral: boolean;
  /** The caller's settings, by their names. They override the built-in ones. */
  further: Readonly<Record<string, string>>;
}

/**
 * The time for which binary logs are kept. It must exceed the time of an upgrade, which replicates from the moment of
 * its dump.
 */
const binaryLogSeconds = 2 * 86_400;

/** Returns settings for an engine's messages, character sets and plugins. An installed server finds its own. */
function ownFolders({ root, share, plugins }: Engine): Record<string, string> {
  if (root === '/') return {};
  return {
    basedir: `${root}/usr`,
    'lc-messages-dir': share,
    'character-sets-dir': `${share}/charsets`,
    ...(plugins === null ? {} : { 'plugin-dir': plugins }),
  };
}

/** Returns a server's settings, by their names on the command line. No configuration file is read. */
export function serverSettings(engine: Engine, paths: ServerPaths, choice: SettingsChoice): Record<string, string> {
  const { listen, tls, isEphemeral } = choice;
  return {
    ...ownFolders(engine),
    datadir: paths.data,
    tmpdir: paths.tmp,
    socket: paths.socket,
    'pid-file': `${paths.tmp}/server.pid`,
    'server-id': String(choice.serverId),
    ...(listen === null ? { 'skip-networking': 'ON' } : { 'bind-address': listen.address, port: String(listen.port) }),
    ...(tls === null
      ? {}
      : {
          'ssl-cert': tls.certificate,
          'ssl-key': tls.key,
          ...(tls.authority !== undefined && { 'ssl-ca': tls.authority }),
        }),
    // This refuses TCP without TLS. A Unix socket counts as secure.
    'require-secure-transport': 'ON',
    'skip-name-resolve': 'ON',
    'local-infile': 'OFF',
    'event-scheduler': choice.isEventSchedulerOn ? 'ON' : 'OFF',
    ...(choice.hasBinaryLog ? binaryLog(isEphemeral) : {}),
    'innodb-flush-log-at-trx-commit': isEphemeral ? '2' : '1',
    'innodb-buffer-pool-size': String(choice.bufferPoolBytes),
    'innodb-log-buffer-size': String(4 * 2 ** 20),
    'key-buffer-size': String(2 ** 20),
    'table-open-cache': '800',
    'table-definition-cache': '800',
    'max-connections': '200',
    'performance-schema': 'OFF',
    ...(engine.flavour === 'mariadb' ? mariadbSettings(engine) : mysqlSettings(engine)),
    ...choice.further,
  };
}

const binaryLog = (isEphemeral: boolean): Record<string, string> => ({
  'log-bin': 'binlog',
  // Customers without SUPER may create triggers and functions, deterministic or not. That is safe, because the log has
  // rows and not statements.
  'log-bin-trust-function-creators': 'ON',
  'sync-binlog': isEphemeral ? '0' : '1',
  'max-binlog-size': String(64 * 2 ** 20),
});

function mariadbSettings({ version }: Engine): Record<string, string> {
  return {
    'character-set-server': 'utf8mb4',
    'binlog-format': 'ROW',
    'symbolic-links': 'OFF',
    'gtid-strict-mode': 'ON',
    'log-slave-updates': 'ON',
    // MariaDB has no value of this setting that forbids all files. A device works, because no file can exist below it.
    'secure-file-priv': '/dev/null',
    'aria-pagecache-buffer-size': String(8 * 2 ** 20),
    'innodb-log-file-size': String(48 * 2 ** 20),
    'tls-version': 'TLSv1.2,TLSv1.3',
    ...(compareVersions(version, '10.6') < 0
      ? { 'expire-logs-days': String(Math.ceil(binaryLogSeconds / 86_400)) }
      : { 'binlog-expire-logs-seconds': String(binaryLogSeconds) }),
  };
}

function mysqlSettings({ version }: Engine): Record<string, string> {
  return {
    'gtid-mode': 'ON',
    'enforce-gtid-consistency': 'ON',
    'log-replica-updates': 'ON',
    'binlog-expire-logs-seconds': String(binaryLogSeconds),
    'secure-file-priv': 'NULL',
    mysqlx: 'OFF',
    'innodb-redo-log-capacity': String(64 * 2 ** 20),
    'temptable-max-ram': String(32 * 2 ** 20),
    // Newer versions log rows by default, and warn about the setting.
    ...(compareVersions(version, '8.4') < 0 ? { 'binlog-format': 'ROW' } : {}),
  };
}

export const settingsArguments = (settings: Readonly<Record<string, string>>): string[] => [
  '--no-defaults',
  ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
];

export const serverEnvironment = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };

/** The limit is long, because creating a data folder takes seconds on a busy machine. */
const initTimeoutMs = 120_000;

/** A server's folders below `<home>/<flavour>-<version>`. Several versions can exist side by side. */
export interface ServerPlace {
  data: string;
  tmp: string;
}

export function placeOf(home: string, { flavour, version }: Engine): ServerPlace {
  const place = path.join(home, `${flavour}-${version}`);
  return { data: path.join(place, 'data'), tmp: path.join(place, 'tmp') };
}

/**
 * Creates a data folder. Only the account `root@localhost` can log in, with this password. There is no anonymous
 * account and no database `test`. An interrupted creation leaves only `<place>.unfinished`, which the next call
 * removes.
 */
export async function initDataFolder(engine: Engine, { data }: ServerPlace, password: string): Promise<void> {
  const place = path.dirname(data);
  const unfinished = `${place}.unfinished`;
  fs.rmSync(unfinished, { recursive: true, force: true });
  // The server's account must own everything below the folder.
  makePrivateFolder(unfinished);
  for (const name of ['data', 'tmp']) makePrivateFolder(path.join(unfinished, name));
  if (engine.flavour === 'mariadb') await bootstrapMariadb(engine, unfinished, password);
  else await initMysql(engine, unfinished, password);
  fs.renameSync(unfinished, place);
}

const systemScripts = ['system_tables', 'performance_tables', 'system_tables_data'];

async function bootstrapMariadb(engine: Engine, place: string, password: string): Promise<void> {
  const fileOf = (name: string): string => {
    const found = ['mariadb', 'mysql']
      .map((prefix) => path.join(engine.share, `${prefix}_${name}.sql`))
      .find((file) => fs.existsSync(file));
    if (found === undefined) throw new Error(`${engine.label} has no ${name}.sql in ${engine.share}`);
    return found;
  };
  const files = [...systemScripts.map(fileOf), path.join(engine.share, 'fill_help_tables.sql')].filter((file) =>
    fs.existsSync(file),
  );
  async function* statements(): AsyncGenerator<string> {
    yield "set @current_hostname='localhost', @auth_root_socket=NULL, @skip_auth_anonymous=1;\n" +
      'create database mysql;\nuse mysql;\n';
    for (const file of files) for await (const chunk of fs.createReadStream(file, 'utf8')) yield String(chunk);
    yield `\n${accountStatements(password).join('\n')}\n`;
  }
  const settings = {
    ...ownFolders(engine),
    datadir: path.join(place, 'data'),
    tmpdir: path.join(place, 'tmp'),
    'log-warnings': '0',
  };
  await runServer(
    engine,
    ['--bootstrap', '--skip-networking', '--innodb-buffer-pool-size=16M', '--enforce-storage-engine='],
    settings,
    statements(),
  );
}

/**
 * Returns the statements that set up the accounts. They write the server's tables, because account statements do not
 * work during the creation. A bootstrap requires each statement on one line.
 */
function accountStatements(password: string): string[] {
  return [
    "DELETE FROM global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');",
    "UPDATE global_priv SET Priv = JSON_SET(Priv, '$.plugin', 'mysql_native_password', " +
      `'$.authentication_string', '${nativeVerifier(password)}') WHERE User = 'root';`,
    'DELETE FROM db;',
    "DELETE FROM proxies_priv WHERE Host <> 'localhost' OR User <> 'root';",
  ];
}

/** Returns the verifier that a server stores for a password in the format of MySQL 4.1. */
export function nativeVerifier(password: string): string {
  const sha1 = (bytes: Buffer | string): Buffer => createHash('sha1').update(bytes).digest();
  return `*${sha1(sha1(password)).toString('hex').toUpperCase()}`;
}

async function initMysql(engine: Engine, place: string, password: string): Promise<void> {
  const file = path.join(place, 'account.sql');
  fs.writeFileSync(
    file,
    `ALTER USER root@localhost IDENTIFIED WITH caching_sha2_password BY '${password.replaceAll("'", "''")}';\n`,
    {
      mode: 0o600,
    },
  );
  const { uid } = serverAccount();
  if (uid !== undefined) fs.chownSync(file, uid, uid);
  const settings = {
    ...ownFolders(engine),
    datadir: path.join(place, 'data'),
    tmpdir: path.join(place, 'tmp'),
    'init-file': file,
  };
  const small = [
    '--innodb-buffer-pool-size=16M',
    '--innodb-redo-log-capacity=64M',
    '--performance-schema=OFF',
    '--mysqlx=OFF',
    '--disable-log-bin',
    '--secure-file-priv=NULL',
  ];
  try {
    await runServer(engine, ['--initialize-insecure', ...small], settings, null);
  } finally {
    fs.rmSync(file, { force: true });
  }
}

async function runServer(
  engine: Engine,
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  input: AsyncIterable<string> | null,
): Promise<void> {
  const [program = '', ...first] = engine.programs.server;
  const child = await spawnGuarded(program, [...first, ...settingsArguments(settings), ...args], {
    ...serverAccount(),
    env: serverEnvironment,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'pipe'],
    signalOnOrphan: 'SIGKILL',
  });
  let lastWords = '';
  child.process.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-4000);
  });
  const timer = setTimeout(() => void child.stop('SIGTERM', 1_000), initTimeoutMs);
  try {
    // Writing to a server that has ended early fails. The error below then says why it ended, so this one is ignored.
    if (input !== null && child.process.stdin)
      await pipeline(Readable.from(input), child.process.stdin).catch(() => undefined);
    else child.process.stdin?.end();
    const { code, signal } = await child.exited;
    if (code !== 0)
      throw new Error(`${engine.label} did not make its data folder (${signal ?? `code ${code}`}):\n${lastWords}`);
  } finally {
    clearTimeout(timer);
  }
}
