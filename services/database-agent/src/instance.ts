import type { Major } from '@drydock/contracts/databases/major';
import { KeptServer, type RunningServer } from '@drydock/process/kept-server';
import type { Log } from '@drydock/service/telemetry/log';
import type { Purpose } from './engine';
import { engineOf } from './engines';
import { removeServerFolders } from './server-files';
import type { TlsMaterial } from './tls-authority';

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
