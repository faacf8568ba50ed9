import { setTimeout as wait } from 'node:timers/promises';

export interface WriterSession {
  /** Writes a row in its own transaction. Resolves when the commit is acknowledged. */
  write(id: number): Promise<void>;
  close(): Promise<void>;
}

export interface SteadyWriterOptions {
  connect: () => Promise<WriterSession>;
  /** The rate at which rows are written. A slow server gets fewer. */
  rowsPerSecond: number;
}

export interface WriterReport {
  /** The ids of the rows whose commit was acknowledged. */
  acknowledged: number[];
  /** The longest time between two acknowledgements in milliseconds. */
  longestGapMs: number;
  reconnects: number;
}

/**
 * Plays an application during a switch: writes rows, each in its own transaction, and reconnects when its session ends.
 * The test checks afterwards that every acknowledged row exists.
 */
export class SteadyWriter {
  private readonly options: SteadyWriterOptions;
  private readonly acknowledged: number[] = [];
  private longestGapMs = 0;
  private reconnects = -1;
  private isStopped = false;
  private readonly done: Promise<void>;
  private session: WriterSession | null = null;

  constructor(options: SteadyWriterOptions) {
    this.options = options;
    this.done = this.run();
  }

  get written(): number {
    return this.acknowledged.length;
  }

  async stop(): Promise<WriterReport> {
    this.isStopped = true;
    await this.done;
    return { acknowledged: this.acknowledged, longestGapMs: this.longestGapMs, reconnects: this.reconnects };
  }

  private async run(): Promise<void> {
    const everyMs = 1000 / this.options.rowsPerSecond;
    let nextMs = performance.now();
    let lastMs: number | null = null;
    for (let id = 1; !this.isStopped; id++) {
      try {
        await this.write(id);
        const nowMs = performance.now();
        if (lastMs !== null) this.longestGapMs = Math.max(this.longestGapMs, nowMs - lastMs);
        lastMs = nowMs;
        this.acknowledged.push(id);
      } catch {
        await this.disconnect();
        await wait(2);
      }
      nextMs = Math.max(nextMs + everyMs, performance.now() - 20 * everyMs);
      const pauseMs = nextMs - performance.now();
      if (pauseMs > 1) await wait(pauseMs);
    }
    await this.disconnect();
  }

  private async write(id: number): Promise<void> {
    if (this.session === null) {
      this.session = await this.options.connect();
      this.reconnects++;
    }
    await this.session.write(id);
  }

  private async disconnect(): Promise<void> {
    const { session } = this;
    this.session = null;
    await session?.close().catch(() => undefined);
  }
}
