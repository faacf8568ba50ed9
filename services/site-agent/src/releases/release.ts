import { realpath } from 'node:fs/promises';
import type { AppRunner } from '../apps/app-runner';
import type { Content } from '../content/content';
import type { ReleaseDatabase } from '../database/release-database';

const retireMs = 10_000;

export interface ReleaseOptions {
  releaseId: string;
  database: ReleaseDatabase;
  filesDir: string;
  openApp(filesDir: string): AppRunner;
  openContent(filesDir: string): Content;
}

/**
 * One release as it is served: its files, its pages and its application together, so that a request cannot mix
 * releases. A request takes it once (`use`) and gives it back. A retired release ends its processes when the last
 * request has ended.
 */
export class Release {
  readonly releaseId: string;
  readonly database: ReleaseDatabase;
  readonly filesDir: string;
  readonly app: AppRunner;
  readonly content: Content;
  private inFlight = 0;
  private readonly onIdle: (() => void)[] = [];

  private constructor({ releaseId, database, filesDir, openApp, openContent }: ReleaseOptions) {
    this.releaseId = releaseId;
    this.database = database;
    this.filesDir = filesDir;
    this.app = openApp(filesDir);
    this.content = openContent(filesDir);
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

  /** True when no request is running any more, false after `timeoutMs`. */
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

  /** Ends its processes once the running requests have ended, at most 10 s from now. */
  async retire(): Promise<void> {
    await this.drained(retireMs);
    await Promise.all([this.content.close(), this.app.close()]);
  }
}
