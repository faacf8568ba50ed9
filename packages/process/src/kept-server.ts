import { once } from 'node:events';
import { setTimeout as sleep, setTimeout as wait } from 'node:timers/promises';
import type { GuardedChild } from './guarded-child';

export type Answer = 'ready' | 'not yet' | 'wrong password';

export interface Awaited {
  /** The server's name for people, such as `MariaDB 10.11`. */
  label: string;
  timeoutMs: number;
  ask: () => Promise<Answer>;
  /**
   * How long a server that cannot bind its port may take to end. Meanwhile another server on that port may answer
   * `wrong password`, which says nothing about the started server. The default is 0, for an address at which no other
   * server can answer.
   */
  bindTimeoutMs?: number;
  onLog?: ((text: string) => void) | undefined;
}

/**
 * Resolves when a started server answers. @throws with its last output if it ends or does not answer in time, and
 * without output if it refuses the password
 */
export async function waitUntilAnswering(
  child: GuardedChild,
  { label, timeoutMs, ask, bindTimeoutMs = 0, onLog }: Awaited,
): Promise<void> {
  let lastWords = '';
  child.process.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-4000);
    onLog?.(chunk.toString());
  });
  const until = performance.now() + timeoutMs;
  const allSaid = once(child.process, 'close');
  const isOver = (): boolean => child.process.exitCode !== null || child.process.signalCode !== null;
  for (;;) {
    const answer = await ask();
    if (answer === 'wrong password' && bindTimeoutMs > 0 && !isOver())
      await Promise.race([child.exited, sleep(bindTimeoutMs)]);
    if (isOver()) {
      await Promise.race([allSaid, sleep(1_000)]);
      throw new Error(`${label} did not start:\n${lastWords}`);
    }
    if (answer === 'ready') return;
    if (answer === 'wrong password')
      throw new Error('The password of the data folder differs from the password file beside it');
    if (performance.now() > until)
      throw new Error(`${label} did not answer within ${timeoutMs / 1000} s:\n${lastWords}`);
    await sleep(25);
  }
}

const restartMs = [50, 200, 1_000, 5_000];

export interface RunningServer {
  /** The administrator's URL. */
  adminUrl: string;
  exited: Promise<unknown>;
  stop(): Promise<void>;
}

export interface KeptServerOptions<Server extends RunningServer> {
  /**
   * Starts the server as a child that ends with this process. It must first end a leftover server of an earlier run, so
   * that two servers never use one folder.
   */
  start: () => Promise<Server>;
  /** Called at each start, before the server counts as up. */
  onUp: (server: Server) => Promise<void>;
  onDown: () => void;
  log: { error(facts: object, message: string): void };
  /** Facts that identify the server in the log. */
  facts: object;
}

/** A server that is started again whenever it ends by itself. */
export class KeptServer<Server extends RunningServer> {
  private readonly kept: KeptServerOptions<Server>;
  private server: Server | null = null;
  /** The first start, while it is under way. */
  private starting: Promise<void> | null = null;
  private running: Promise<void> | null = null;
  private stopping = new AbortController();
  private adminUrlKnown: string | null = null;
  private isUpNow = false;

  constructor(options: KeptServerOptions<Server>) {
    this.kept = options;
  }

  get isUp(): boolean {
    return this.isUpNow;
  }

  /** The server while it is up, otherwise null. */
  get current(): Server | null {
    return this.isUpNow ? this.server : null;
  }

  /** The administrator's URL, or null before the first start. */
  get adminUrl(): string | null {
    return this.adminUrlKnown;
  }

  /**
   * Resolves when the server is up for the first time. @throws if this start fails, or if the server is stopped
   * meanwhile. Later starts are repeated until one succeeds.
   */
  start(): Promise<void> {
    if (this.running) return Promise.resolve();
    this.starting ??= this.startFirst().finally(() => {
      this.starting = null;
    });
    return this.starting;
  }

  /** Starts the server without waiting for it. The first start is repeated too until one succeeds. */
  keepStarting(): void {
    if (this.running || this.starting) return;
    const { facts, log } = this.kept;
    this.start().catch((err: unknown) => {
      if (this.stopping.signal.aborted) return;
      log.error({ err, ...facts }, 'a database server does not start');
      this.running = this.startUntilUp().then(() => this.supervise());
    });
  }

  /** Resolves once no first start is under way, whether or not it has succeeded. */
  async settled(): Promise<void> {
    await this.starting?.catch(() => undefined);
  }

  /** Stops the server. A start that is under way is awaited, and what it has started is stopped. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.settled();
    await this.server?.stop();
    await this.running?.catch(() => undefined);
    this.running = null;
    this.isUpNow = false;
  }

  private async startFirst(): Promise<void> {
    this.stopping = new AbortController();
    try {
      await this.startOnce();
    } catch (error) {
      await this.server?.stop();
      throw error;
    }
    this.running = this.supervise();
  }

  private async startOnce(): Promise<void> {
    const server = await this.kept.start();
    this.server = server;
    this.adminUrlKnown = server.adminUrl;
    await this.kept.onUp(server);
    if (this.stopping.signal.aborted) throw new Error('the server was stopped during its start');
    this.isUpNow = true;
  }

  private async supervise(): Promise<void> {
    const { facts, log } = this.kept;
    for (;;) {
      await this.server?.exited;
      this.isUpNow = false;
      if (this.stopping.signal.aborted) return;
      this.kept.onDown();
      log.error(facts, 'a database server has ended by itself and is started again');
      await this.startUntilUp();
    }
  }

  /** Starts the server until it is up. Resolves too if the server is stopped meanwhile. */
  private async startUntilUp(): Promise<void> {
    const { facts, log } = this.kept;
    const { signal } = this.stopping;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        return await this.startOnce();
      } catch (error) {
        if (!signal.aborted) log.error({ err: error, ...facts }, 'a database server does not start');
        // The server may run although `onUp` has failed.
        await this.server?.stop();
        const pauseMs = restartMs[Math.min(failures, restartMs.length - 1)];
        await wait(pauseMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
