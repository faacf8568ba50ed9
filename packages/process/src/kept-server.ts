import { setTimeout as wait } from 'node:timers/promises';

const restartMs = [50, 200, 1_000, 5_000];

export interface RunningServer {
  /** The administrator's URL. */
  adminUrl: string;
  exited: Promise<unknown>;
  stop(): Promise<void>;
}

export interface KeptServerOptions<Server extends RunningServer> {
  start: () => Promise<Server>;
  /** Called at each start, before the server counts as up. */
  onUp: (server: Server) => Promise<void>;
  onDown: () => void;
  log: { error(facts: object, message: string): void };
  /** Facts that identify the server in the log. */
  facts: object;
}

/**
 * A server that is restarted whenever it ends. The server ends when this process ends. A start first looks for a
 * leftover server, proves that it works on the same folder, and ends it, so that two servers never use one folder.
 */
export class KeptServer<Server extends RunningServer> {
  private readonly kept: KeptServerOptions<Server>;
  private server: Server | null = null;
  private running: Promise<void> | null = null;
  private isStopping = false;
  private adminUrlKnown: string | null = null;
  private isUpNow = false;

  constructor(options: KeptServerOptions<Server>) {
    this.kept = options;
  }

  get isUp(): boolean {
    return this.isUpNow;
  }

  /** The administrator's URL, or null before the first start. */
  get adminUrl(): string | null {
    return this.adminUrlKnown;
  }

  /** Resolves when the server answers. Throws if the first start fails. A later failed start is repeated. */
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

  /** Stops the server and does not restart it. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.server?.stop();
    await this.running?.catch(() => undefined);
    this.running = null;
    this.isUpNow = false;
  }

  private async startOnce(): Promise<void> {
    const server = await this.kept.start();
    this.server = server;
    this.adminUrlKnown = server.adminUrl;
    await this.kept.onUp(server);
    this.isUpNow = true;
  }

  private async supervise(): Promise<void> {
    const { facts, log } = this.kept;
    for (let failures = 0; ; ) {
      await this.server?.exited;
      this.isUpNow = false;
      if (this.isStopping) return;
      this.kept.onDown();
      log.error(facts, 'a database server has ended by itself and is started again');
      try {
        await this.startOnce();
        failures = 0;
        if (this.isStopping) await this.server?.stop();
      } catch (error) {
        log.error({ err: error, ...facts }, 'a database server does not start');
        // A server that runs but failed in `onUp` is restarted as well.
        await this.server?.stop();
        await wait(restartMs[Math.min(failures++, restartMs.length - 1)]);
        if (this.isStopping) return;
      }
    }
  }
}
