import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type PostgresServer, startPostgres } from '@drydock/postgres/server/postgres';
import { settlePostgresFolder } from '@drydock/postgres/server/postgres-folder';
import { serverAccount } from '@drydock/process/unprivileged';
import type { Log } from '@drydock/service/telemetry/log';
import { instanceSettings, type Tuning } from './instance-settings';
import type { TlsMaterial } from './tls-authority';

const restartMs = [50, 200, 1_000, 5_000];
/** The most private memory of one session, as in the sites' Postgres: a value of a gigabyte costs its statement, not the machine. */
const sessionBytes = 512 * 2 ** 20;

export interface InstanceOptions {
  folder: string;
  major: number;
  /** Kept for ever: the other instance of an upgrade knows it. */
  port: number;
  /** Its own: as root its server runs under it, an ordinary user's server runs in a box. */
  account: number;
  tls: TlsMaterial;
  /** Asked at each start: what an instance is for changes at a cutover. */
  tuning: () => Tuning;
  log: Log;
  /** Before anybody is told that it is up, each time. The URL is of database `postgres`, by the platform's role. */
  onUp: (adminUrl: string) => Promise<void>;
  onDown: () => void;
}

/**
 * One Postgres server of a customer, restarted whenever it ends by itself. It does not outlive us: a guard beside it passes our end on, and a start finds what was left,
 * proves that it is a server on this very folder, and ends it first. So no two ever run on one folder.
 */
export class Instance {
  readonly major: number;
  readonly port: number;
  private readonly options: InstanceOptions;
  private server: PostgresServer | null = null;
  private running: Promise<void> | null = null;
  private isStopping = false;
  private adminUrlKnown: string | null = null;
  private isUpNow = false;

  constructor(options: InstanceOptions) {
    this.options = options;
    this.major = options.major;
    this.port = options.port;
  }

  get isUp(): boolean {
    return this.isUpNow;
  }

  /** By the platform's role, database `postgres`; null before the first start. */
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
    const { home } = settlePostgresFolder(this.options.folder, this.major);
    await rm(home, { recursive: true, force: true });
    await rm(this.options.folder, { recursive: true, force: true });
  }

  private async startOnce(): Promise<void> {
    const { folder, major, port, account, onUp } = this.options;
    const tuning = this.options.tuning();
    const server = await startPostgres({
      folder,
      major,
      port,
      account,
      sessionBytes,
      settings: instanceSettings(tuning),
      files: this.writeFiles(tuning),
    });
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

  /** Certificate and rules of who may enter lie where the server's account can read them, for every start afresh; by the setting that names them. */
  private writeFiles(tuning: Tuning): Record<string, string> {
    const { home } = settlePostgresFolder(this.options.folder, this.major);
    const folder = path.join(home, 'tls');
    const { uid } = serverAccount(this.options.account);
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    const write = (name: string, text: string): string => {
      const file = path.join(folder, name);
      writeFileSync(file, text, { mode: 0o600 });
      if (uid !== undefined) chownSync(file, uid, uid);
      return file;
    };
    return {
      hba_file: write('pg_hba.conf', tuning.accessRules),
      ssl_cert_file: write('server.crt', this.options.tls.certificate),
      ssl_key_file: write('server.key', this.options.tls.key),
    };
  }
}
