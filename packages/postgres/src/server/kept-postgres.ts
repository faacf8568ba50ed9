import { rm } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres';
import { settlePostgresFolder } from './postgres-folder';

const restartMs = [50, 200, 1_000, 5_000];
/** The most private memory of one session of a customer: a value of a gigabyte costs its statement, not the machine. Twice what building an index takes while a site is restored. */
export const customerSessionBytes = 512 * 2 ** 20;

export interface KeptPostgresOptions {
  folder: string;
  major: number;
  /** Asked at each start: what a server is for can change. */
  serverOptions: () => Omit<PostgresOptions, 'folder' | 'major'>;
  /** Before anybody is told that it is up, each time. The URL is of database `postgres`, by the platform's role. */
  onUp: (server: PostgresServer) => Promise<void>;
  onDown: () => void;
  log: { error(facts: object, message: string): void };
}

/**
 * One Postgres server that is started again whenever it ends by itself. It does not outlive us: a guard beside it passes our end on, and a start finds what was left,
 * proves that it is a server on this very folder, and ends it first. So no two ever run on one folder.
 */
export class KeptPostgres {
  readonly major: number;
  private readonly options: KeptPostgresOptions;
  private server: PostgresServer | null = null;
  private running: Promise<void> | null = null;
  private isStopping = false;
  private adminUrlKnown: string | null = null;
  private isUpNow = false;

  constructor(options: KeptPostgresOptions) {
    this.options = options;
    this.major = options.major;
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
    const { folder, major } = this.options;
    const { home } = settlePostgresFolder(folder, major);
    await rm(home, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }

  private async startOnce(): Promise<void> {
    const { folder, major, serverOptions, onUp } = this.options;
    const server = await startPostgres({ ...serverOptions(), folder, major });
    this.server = server;
    this.adminUrlKnown = server.adminUrl;
    await onUp(server);
    this.isUpNow = true;
  }

  private async supervise(): Promise<void> {
    const { folder, major, log } = this.options;
    for (let failures = 0; ; ) {
      await this.server?.exited;
      this.isUpNow = false;
      if (this.isStopping) return;
      this.options.onDown();
      log.error({ major, folder }, 'a Postgres server has ended by itself and is started again');
      try {
        await this.startOnce();
        failures = 0;
        if (this.isStopping) await this.server?.stop();
      } catch (error) {
        log.error({ err: error, major, folder }, 'a Postgres server does not start');
        // One that runs but could not be made ready is started afresh too.
        await this.server?.stop();
        await wait(restartMs[Math.min(failures++, restartMs.length - 1)]);
        if (this.isStopping) return;
      }
    }
  }
}
