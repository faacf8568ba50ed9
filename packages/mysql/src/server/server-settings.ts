import type { Engine } from '../engines/list-engines';
import { compareVersions } from '../engines/version';

/** The paths that the server sees, which differ in a box. */
export interface ServerPaths {
  data: string;
  tmp: string;
  socket: string;
}

export interface SettingsChoice {
  /** The TCP address, where one is wanted. */
  listen: { address: string; port: number } | null;
  tls: { certificate: string; key: string; authority?: string } | null;
  isEventSchedulerOn: boolean;
  serverId: number;
  bufferPoolBytes: number;
  hasBinaryLog: boolean;
  isEphemeral: boolean;
  /** The caller's settings, by the server's names. They override ours. */
  further: Readonly<Record<string, string>>;
}

/** How long binary logs are kept. An upgrade replicates from the moment of its dump, and takes much less time. */
const binaryLogSeconds = 2 * 86_400;

/**
 * Settings for the messages, character sets and plugins of an engine. An installed server knows their places itself.
 */
export function ownFolders({ root, share, plugins }: Engine): Record<string, string> {
  if (root === '/') return {};
  return {
    basedir: `${root}/usr`,
    'lc-messages-dir': share,
    'character-sets-dir': `${share}/charsets`,
    ...(plugins === null ? {} : { 'plugin-dir': plugins }),
  };
}

/** The settings of a server, by their names on the command line. No configuration file of the machine is read. */
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
    // The Unix socket counts as secure.
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
  // Lets customers without SUPER create triggers and functions, deterministic or not. That is safe, because the log
  // holds whole rows and not statements.
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
    // MariaDB has no value that forbids files altogether. It accepts the path of a device, below which no file can
    // exist.
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
    // Newer versions write whole rows anyway, and warn about the setting.
    ...(compareVersions(version, '8.4') < 0 ? { 'binlog-format': 'ROW' } : {}),
  };
}

export const settingsArguments = (settings: Readonly<Record<string, string>>): string[] => [
  '--no-defaults',
  ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
];
