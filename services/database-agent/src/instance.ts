import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import { KeptServer, type RunningServer } from '@drydock/process/kept-server';
import { removeServerFolders } from '@drydock/process/server-folder';
import type { Log } from '@drydock/service/telemetry/log';
import type { Engine, Purpose } from './engine';
import { mysqlEngine } from './mysql-engine';
import { installedMysqlMajors } from './mysql-session';
import { postgresEngine } from './postgres-engine';
import { installedPostgresMajors } from './postgres-majors';
import type { TlsMaterial } from './tls-authority';

/** The majors of every engine whose programs are on this machine. */
export const installedMajors = async (): Promise<Major[]> => [...installedPostgresMajors(), ...(await installedMysqlMajors())];

/** How the instances of a major are run. */
export const engineOf = (major: Major): Engine => (flavourOf(major) === 'postgres' ? postgresEngine : mysqlEngine);

export interface InstanceOptions {
  folder: string;
  major: Major;
  /** Kept for ever: the other instance of an upgrade knows it. */
  port: number;
  /** Its own: as root its server runs under it, an ordinary user's server runs in a box. */
  account: number;
  tls: TlsMaterial;
  /** Asked at each start: what an instance is for changes at a cutover. */
  purpose: () => Purpose;
  log: Log;
  /** Before anybody is told that it is up, each time. */
  onUp: (adminUrl: string) => Promise<void>;
  onDown: () => void;
}

/** One server of a customer, of whatever engine. */
export class Instance extends KeptServer<RunningServer> {
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

  /** Stopped, and its data removed. */
  async remove(): Promise<void> {
    await this.stop();
    await removeServerFolders(this.folder);
  }
}
