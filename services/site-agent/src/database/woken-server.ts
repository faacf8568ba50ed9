import { SerialQueue } from '@drydock/agent/host';
import type { Log } from '@drydock/service/telemetry';

/** The time without use after which a server is stopped. */
export const idleMs = 15 * 60_000;
const checkEveryMs = 60_000;

export interface WokenServerOptions {
  server: { start(): Promise<void>; stop(): Promise<void> };
  /**
   * Whether the server has no session and nobody is about to open one. Called only while the server runs. Holders
   * ({@link WokenServer.hold}) count separately.
   */
  isUnused: () => Promise<boolean>;
  folder: string;
  log: Log;
}

/** A server that starts at its first use, and stops after some time without use. */
export class WokenServer {
  private readonly options: WokenServerOptions;
  private readonly turn = new SerialQueue();
  private readonly timer: NodeJS.Timeout;
  private state: 'started' | 'stopped' | 'closed' = 'stopped';
  private usedMs = performance.now();
  private readonly holders = new Set<symbol>();

  constructor(options: WokenServerOptions) {
    this.options = options;
    const { folder, log } = options;
    this.timer = setInterval(() => {
      this.stopIfUnused().catch((err: unknown) =>
        log.warn({ err, folder }, 'whether a database server of sites is in use could not be asked'),
      );
    }, checkEveryMs).unref();
  }

  get isStarted(): boolean {
    return this.state === 'started';
  }

  /** Starts the server if it is stopped. Resolves when it runs. Throws after `close`. */
  async wake(): Promise<void> {
    this.usedMs = performance.now();
    if (this.state === 'started') return;
    await this.turn.run(async () => {
      if (this.state === 'closed') throw new Error('this database server of sites is closed');
      if (this.state === 'started') return;
      await this.options.server.start();
      this.state = 'started';
    });
  }

  /**
   * Opens something with `open`, and keeps the server from being stopped until the result's `close` is called. A job
   * may have no session for a long time, for example while it packs files before the database.
   */
  async hold<T extends object>(open: () => Promise<T>): Promise<T & { close(): void }> {
    const holder = Symbol('holder');
    this.holders.add(holder);
    const close = (): void => void this.holders.delete(holder);
    try {
      return { ...(await open()), close };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Stops the server after {@link idleMs} without use. */
  async stopIfUnused(nowMs = performance.now()): Promise<void> {
    const isRecent = (): boolean => nowMs - this.usedMs < idleMs;
    if (this.state !== 'started' || isRecent()) return;
    const isUnused = await this.options.isUnused();
    // A client or a holder may have come during the check. From here on, they wait for the stop and the next start.
    if (!isUnused || this.holders.size > 0) this.usedMs = nowMs;
    if (isRecent() || this.state !== 'started') return;
    await this.stop('stopped');
  }

  /** Stops the server. It does not start again. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.stop('closed');
  }

  private stop(state: 'stopped' | 'closed'): Promise<void> {
    this.state = state;
    return this.turn.run(() => this.options.server.stop());
  }
}
