import { SerialQueue } from '@drydock/agent/host';
import type { Log } from '@drydock/service/telemetry';

/** The time without use after which a server is stopped. */
export const idleMs = 15 * 60_000;
const checkEveryMs = 60_000;

export interface WokenServerOptions {
  server: { start(): Promise<void>; stop(): Promise<void> };
  /** Whether the server has no session and nobody is about to open one. Called only while the server runs. */
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

  /** Stops the server after {@link idleMs} without use. */
  async stopIfUnused(nowMs = performance.now()): Promise<void> {
    const isRecent = (): boolean => nowMs - this.usedMs < idleMs;
    if (this.state !== 'started' || isRecent()) return;
    if (!(await this.options.isUnused())) this.usedMs = nowMs;
    // A client may have come during the check. From here on, a client waits for the stop and the next start.
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
