import { setTimeout as wait } from 'node:timers/promises';
import type { Major } from '@drydock/contracts/databases/major';
import type { Log } from '@drydock/service/telemetry/log';
import type { Engine, Purpose, RunningServer } from './engine';
import { engineOf } from './engines';
import { removeServerFolders } from './server-files';
import type { TlsMaterial } from './tls-authority';

const restartMs = [50, 200, 1_000, 5_000];
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
  /** Before anybody is told that it is up, each time. The URL is the administrator's. */
  onUp: (adminUrl: string) => Promise<void>;
  onDown: () => void;
}

/**
 * One server of a customer, restarted whenever it ends by itself. It does not outlive us: a guard beside it passes our end on, and a start finds what was left,
 * proves that it is a server on this very folder, and ends it first. So no two ever run on one folder.
 */
export class Instance {
  readonly major: Major;
  readonly port: number;
  private readonly options: InstanceOptions;
  private readonly engine: Engine;
  private server: RunningServer | null = null;
  private running: Promise<void> | null = null;
  private isStopping = false;
  private adminUrlKnown: string | null = null;
  private isUpNow = false;

  constructor(options: InstanceOptions) {
    this.options = options;
    this.major = options.major;
    this.engine = engineOf(options.major);
    this.port = options.port;
  }

  get isUp(): boolean {
    return this.isUpNow;
  }

  /** The administrator's; null before the first start. */
  get adminUrl(): string | null {
    return this.adminUrlKnown;
  }

  /** Resolves when it answers. Throws when it does not start the first time; after that it is started again and again. */
  async start(): Promise<void> {
    if (this.running) return;
    this.isStopping = false;
    try {
      await this.startOnce();
    } catch (error) {
      await this.server?.stop();
      throw error;
    }
    this.running = this.supervise();
  }

  /** Ends it in order and starts it no more. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.server?.stop();
    await this.running?.catch(() => undefined);
    this.running = null;
    this.isUpNow = false;
  }

  /** Stopped, and its data removed. */
  async remove(): Promise<void> {
    await this.stop();
    await removeServerFolders(this.options.folder);
  }

  private async startOnce(): Promise<void> {
    const { purpose, onUp, onDown: _down, log: _log, ...start } = this.options;
    const server = await this.engine.start({ ...start, purpose: purpose() });
    this.server = server;
    this.adminUrlKnown = server.adminUrl;
    await onUp(server.adminUrl);
    this.isUpNow = true;
  }

  private async supervise(): Promise<void> {
    for (let failures = 0; ; ) {
      await this.server?.exited;
      this.isUpNow = false;
      if (this.isStopping) return;
      this.options.onDown();
      this.options.log.error({ major: this.major, port: this.port }, 'an instance has ended by itself and is started again');
      try {
        await this.startOnce();
        failures = 0;
        if (this.isStopping) await this.server?.stop();
      } catch (error) {
        this.options.log.error({ err: error, major: this.major }, 'an instance does not start');
        // One that runs but could not be made ready is started afresh too.
        await this.server?.stop();
        await wait(restartMs[Math.min(failures++, restartMs.length - 1)]);
        if (this.isStopping) return;
      }
    }
  }
}
