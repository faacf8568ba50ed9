import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

export interface SteadyWriterOptions {
  config: pg.ClientConfig;
  /** Rows a second, as far as the server keeps up. */
  rowsPerSecond: number;
  /** Tells writers of one database apart. */
  name: string;
}

export interface WriterReport {
  /** Ids of rows whose commit was acknowledged. */
  acknowledged: number[];
  /** Longest time between two acknowledgements, in milliseconds. */
  longestGapMs: number;
  reconnects: number;
}

const tableSql =
  'create table if not exists written (writer text, id bigint, at timestamptz not null default clock_timestamp(), primary key (writer, id))';

/** The table that writers write to; by the owner, before any upgrade. */
export const writerTableSql = `${tableSql}; grant all on written to public`;

/**
 * An application that writes row after row, each in a transaction of its own with a number of a sequence, and connects again at once when its session ends. What it was
 * told is done must be there afterwards.
 */
export class SteadyWriter {
  private readonly options: SteadyWriterOptions;
  private readonly acknowledged: number[] = [];
  private longestGapMs = 0;
  private reconnects = -1;
  private isStopped = false;
  private readonly done: Promise<void>;
  private client: pg.Client | null = null;

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
    const client = this.client ?? (await this.connect());
    await client.query("begin; select nextval('invoice_no')");
    await client.query('insert into written (writer, id) values ($1, $2)', [this.options.name, id]);
    await client.query('commit');
  }

  private async connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.options.config, connectionTimeoutMillis: 30_000 });
    client.on('error', () => undefined);
    await client.connect();
    this.reconnects++;
    this.client = client;
    return client;
  }

  private async disconnect(): Promise<void> {
    const { client } = this;
    this.client = null;
    await client?.end().catch(() => undefined);
  }
}
