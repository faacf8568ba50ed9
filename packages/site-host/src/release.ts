import { realpath } from 'node:fs/promises';
import pg from 'pg';
import type { AppRunner } from './app-runner';

const connectionsMax = 5;
const statementTimeoutMs = 2_000;
const retireMs = 10_000;

export interface ReleaseOptions {
  releaseId: string;
  database: string;
  filesDir: string;
  /** Straight to the database, as the site's role. */
  url: string;
  openApp(filesDir: string): AppRunner;
}

/**
 * One release as it is served: its files, its own connections and its application, bound together, so that whoever holds a release can mix nothing.
 * A request takes it once (`use`) and gives it back; a retired release ends its connections when the last request has.
 */
export class Release {
  readonly releaseId: string;
  readonly database: string;
  /** Without links, so that a file's real path can be compared with it. */
  readonly filesDir: string;
  readonly app: AppRunner;
  private readonly pool: pg.Pool;
  private inFlight = 0;
  private readonly onIdle: (() => void)[] = [];

  private constructor({ releaseId, database, filesDir, url, openApp }: ReleaseOptions) {
    this.releaseId = releaseId;
    this.database = database;
    this.filesDir = filesDir;
    this.app = openApp(filesDir);
    this.pool = new pg.Pool({
      connectionString: url,
      max: connectionsMax,
      connectionTimeoutMillis: 2_000,
      idleTimeoutMillis: 10_000,
      statement_timeout: statementTimeoutMs,
      application_name: 'site pages',
    });
    // A connection that breaks while idle is replaced at the next page.
    this.pool.on('error', () => undefined);
  }

  static async open(options: ReleaseOptions): Promise<Release> {
    return new Release({ ...options, filesDir: await realpath(options.filesDir) });
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    this.inFlight++;
    try {
      return await work();
    } finally {
      this.inFlight--;
      if (this.inFlight === 0) for (const resolve of this.onIdle.splice(0)) resolve();
    }
  }

  /** True when no request is in flight any more, false after `timeoutMs`. */
  async drained(timeoutMs: number): Promise<boolean> {
    if (this.inFlight === 0) return true;
    let timer: NodeJS.Timeout | undefined;
    const idle = new Promise<true>((resolve) => this.onIdle.push(() => resolve(true)));
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const outcome = await Promise.race([idle, late]);
    clearTimeout(timer);
    return outcome;
  }

  /** Runs `work` in one read-only transaction, so that all of a page shows one moment. */
  async readOnly<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    let isClean = false;
    try {
      await client.query('begin isolation level repeatable read read only');
      const result = await work(client);
      await client.query('rollback');
      // A page may have called set_config: the next one starts afresh.
      await client.query('discard all');
      isClean = true;
      return result;
    } finally {
      client.release(!isClean);
    }
  }

  /** Ends its connections and its application once the requests in flight have ended, at most 10 s from now. */
  async retire(): Promise<void> {
    await this.drained(retireMs);
    await Promise.all([this.pool.end(), this.app.close()]);
  }
}
