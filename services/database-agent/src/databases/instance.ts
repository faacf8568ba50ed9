import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import { KeptServer, removeServerFolders } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import type { Engine, InstanceServer, Purpose } from '../engines/engine';
import { mysqlEngine } from '../engines/mysql/mysql-engine';
import { installedMysqlMajors } from '../engines/mysql/mysql-session';
import { installedPostgresMajors, postgresEngine } from '../engines/postgres/postgres-engine';
import type { TlsMaterial } from '../on-disk/tls-authority';

export const installedMajors = async (): Promise<Major[]> => [
  ...installedPostgresMajors(),
  ...(await installedMysqlMajors()),
];

export const engineOf = (major: Major): Engine => (flavourOf(major) === 'postgres' ? postgresEngine : mysqlEngine);

export interface InstanceOptions {
  folder: string;
  major: Major;
  /** The port on the loopback address. It never changes, because the other instance of an upgrade connects to it. */
  port: number;
  /**
   * The account under which the server runs if the agent is root. Otherwise the server runs in a box, if this machine
   * has boxes.
   */
  account: number;
  tls: TlsMaterial;
  /** Read at each start, because a cutover changes the purpose. */
  purpose: () => Purpose;
  log: Log;
  /** Called at each start, before the instance counts as up. */
  onUp: (adminUrl: string) => Promise<void>;
  onDown: () => void;
}

/** A server of one database, of any engine. Until it is stopped, it is started again whenever it dies. */
export class Instance extends KeptServer<InstanceServer> {
  readonly major: Major;
  readonly port: number;
  private readonly folder: string;

  constructor({ onUp, onDown, log, purpose, ...start }: InstanceOptions) {
    const { major, port, folder } = start;
    super({
      facts: { major, port },
      log,
      onDown,
      onUp: ({ adminUrl }) => onUp(adminUrl),
      start: () => engineOf(major).start({ ...start, purpose: purpose() }),
    });
    this.major = major;
    this.port = port;
    this.folder = folder;
  }

  async remove(): Promise<void> {
    await this.stop();
    await removeServerFolders(this.folder);
  }
}
