import type { Engine } from '../engines/list-engines';
import { compareVersions } from '../engines/version';

/** Paths as the server sees them. They differ in a box. */
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

/** How long binary logs are kept. An upgrade replicates from the moment of its dump and takes less time. */
const binaryLogSeconds = 2 * 86_400;

/** Returns settings for an engine's messages, character sets and plugins. An installed server finds its own. */
export function ownFolders({ root, share, plugins }: Engine): Record<string, string> {
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
    // The server counts a Unix socket as secure.
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
    // MariaDB has no value that forbids files. A device works, because no file can exist below it.
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
    // Newer versions always log rows, and warn about the setting.
    ...(compareVersions(version, '8.4') < 0 ? { 'binlog-format': 'ROW' } : {}),
  };
}

export const settingsArguments = (settings: Readonly<Record<string, string>>): string[] => [
  '--no-defaults',
  ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
];
