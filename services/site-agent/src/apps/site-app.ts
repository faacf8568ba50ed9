import { SerialQueue } from '@drydock/agent/host';
import { type AppDescription, type RestartAnswer, SiteHostError } from '@drydock/agent/site';
import type { GuardedChild, Isolation } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import type { Content } from '../content/content';
import type { SiteFolder } from '../on-disk/site-folder';
import type { AppNetwork } from './app-network';
import { type AppDatabase, AppLog, AppProcess, type AppSettings } from './app-process';

/** The pause after a failed start, so that frequent requests do not start processes all the time. */
const retryMs = 1_000;

/** Counts the processes of the site's application, across releases and restarts of the site agent. */
export interface AppGenerations {
  next(): Promise<number>;
}

export class AppDown extends Error {
  override readonly name: string = 'AppDown';
}

/**
 * This machine has no isolation, so no application is started: nothing would keep it from other sites' files and
 * processes.
 */
export class SandboxUnavailable extends AppDown {
  override readonly name = 'SandboxUnavailable';
}

/** No application is started while its site is over its disk limit. */
export class DiskFull extends AppDown {
  override readonly name = 'DiskFull';
}

/** The application's own files about restarts, as they were read for this request. */
export interface RestartWish {
  /** The mtime of tmp/restart.txt in seconds. */
  restart_seconds: number;
  restarts_always: boolean;
}

/**
 * The application of one release, run by the rules of Passenger. After a change of tmp/restart.txt, the next request
 * starts a fresh process. All later requests wait for the fresh process; running requests end on the old process.
 */
export class AppRunner {
  private readonly settings: AppSettings;
  private readonly generations: AppGenerations;
  private readonly log: Log;
  private current: AppProcess | null = null;
  private currentSeconds = 0;
  private booting: Promise<AppProcess> | null = null;
  private failedMs = Number.NEGATIVE_INFINITY;
  private isClosed = false;
  /** The number of processes begun so far, including those that never listened. */
  starts = 0;

  constructor(settings: AppSettings, generations: AppGenerations, log: Log) {
    this.settings = settings;
    this.generations = generations;
    this.log = log;
  }

  get running(): AppProcess | null {
    return this.current?.isRunning === true ? this.current : null;
  }

  /** The process to use while the restart file is unchanged. Null if no process runs, or while a new one starts. */
  get due(): { process: AppProcess; restart_seconds: number } | null {
    const { running: process } = this;
    return process === null || this.booting !== null ? null : { process, restart_seconds: this.currentSeconds };
  }

  /** Whether code of the application may be running, even before it listens. */
  get isActive(): boolean {
    return this.booting !== null || this.running !== null;
  }

  /** The process to use for this request. Throws {@link AppDown} if none can be started. */
  async take(wish: RestartWish): Promise<AppProcess> {
    if (this.booting !== null) return this.booting;
    const isDue = this.running === null || wish.restart_seconds !== this.currentSeconds || wish.restarts_always;
    if (this.running !== null && !isDue) return this.running;
    this.booting = this.boot(wish.restart_seconds).finally(() => {
      this.booting = null;
    });
    return this.booting;
  }

  /** Ends the process without waiting for its requests. The next request may start another process. */
  async end(): Promise<void> {
    await this.booting?.catch(() => undefined);
    await this.current?.stop();
  }

  /** Ends the process without waiting for its requests. No later request starts another process. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.booting?.catch(() => undefined);
    await this.current?.stop();
  }

  private async boot(seconds: number): Promise<AppProcess> {
    if (this.isClosed) throw new AppDown('the release is no longer served');
    const { isolation, isRiskTaken, isDiskFull } = this.settings;
    if (isolation.kind === 'none' && !isRiskTaken) throw new SandboxUnavailable(isolation.reason);
    if (isDiskFull()) throw new DiskFull('the site has used up its disk space');
    if (performance.now() - this.failedMs < retryMs) throw new AppDown('the application did not start a moment ago');
    this.starts += 1;
    try {
      const fresh = await AppProcess.start(await this.generations.next(), this.settings);
      const old = this.current;
      this.current = fresh;
      this.currentSeconds = seconds;
      old
        ?.retire()
        .catch((error: unknown) => this.log.warn({ err: error }, 'an old process of an application did not end'));
      return fresh;
    } catch (error) {
      this.failedMs = performance.now();
      // The old process is ended too, and its running requests are cut. It may use up the account's limit of processes,
      // and then no start beside it could succeed.
      await this.current?.stop();
      this.log.warn({ err: error }, 'an application did not start');
      throw new AppDown('the application did not start', { cause: error });
    }
  }
}

interface SiteAppSettings {
  folder: SiteFolder;
  /** The site's account. Null stands for this process's account. */
  uid: number | null;
  isolation: Isolation;
  /** Whether the operator lets applications run without isolation. */
  isRiskTaken: boolean;
  network: AppNetwork | null;
  isDiskFull(): boolean;
  onStart(child: GuardedChild): void;
  log: Log;
}

interface AppRelease {
  app: AppRunner;
  content: Pick<Content, 'hasApp' | 'touchRestartFile'>;
}

/** The application of a site, across all its releases: its generation, and the time of its last restart. */
export class SiteApp {
  private readonly settings: SiteAppSettings;
  private readonly record = new SerialQueue();
  private readonly printed: AppLog;

  constructor(settings: SiteAppSettings) {
    this.settings = settings;
    this.printed = new AppLog(settings.folder.appLogFile);
  }

  openRunner(filesDir: string, database: AppDatabase): AppRunner {
    const { uid, isolation, isRiskTaken, network, isDiskFull, onStart, log } = this.settings;
    const settings = {
      filesDir,
      database,
      log: this.printed,
      uid,
      isolation,
      isRiskTaken,
      network,
      isDiskFull,
      onStart,
    };
    return new AppRunner(settings, { next: () => this.nextGeneration() }, log);
  }

  async describe(release: AppRelease | null): Promise<AppDescription> {
    const { generation, last_restart_at } = await this.settings.folder.readApp();
    const has_app = release !== null && (await isPresent(release));
    return { has_app, generation, pid: release?.app.running?.pid ?? null, refusal: this.refusal, last_restart_at };
  }

  /**
   * Restarts the application by touching tmp/restart.txt, as a customer does. Throws `no_app`, `restart_blocked`,
   * `sandbox_unavailable`.
   */
  async restart(release: AppRelease | null): Promise<RestartAnswer> {
    if (release === null || !(await isPresent(release))) throw new SiteHostError('no_app', 'the site has no app.js');
    if (this.refusal !== null)
      throw new SiteHostError(this.refusal, 'no application can be kept apart on this machine');
    const { folder } = this.settings;
    // The touch and the read are one task of the queue. A process that got its number between them would be fresh, but
    // its number would not be greater than the returned `generation`.
    return this.record.run(async () => {
      const restarted_at = new Date().toISOString();
      const seconds = await release.content.touchRestartFile(Date.parse(restarted_at));
      if (seconds === null)
        throw new SiteHostError('restart_blocked', 'tmp or tmp/restart.txt is a link, or not what it must be');
      const { generation } = await folder.readApp();
      await folder.writeApp({ generation, last_restart_at: restarted_at });
      return { restarted_at, generation };
    });
  }

  private get refusal(): 'sandbox_unavailable' | null {
    const { isolation, isRiskTaken } = this.settings;
    return isolation.kind === 'none' && !isRiskTaken ? 'sandbox_unavailable' : null;
  }

  private nextGeneration(): Promise<number> {
    return this.record.run(async () => {
      const { folder } = this.settings;
      const record = await folder.readApp();
      const generation = record.generation + 1;
      await folder.writeApp({ ...record, generation });
      return generation;
    });
  }
}

const isPresent = async ({ app, content }: AppRelease): Promise<boolean> =>
  app.running !== null || (await content.hasApp());
