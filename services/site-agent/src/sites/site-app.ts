import { SerialQueue } from '@drydock/agent/host';
import { type AppDescription, type RestartAnswer, SiteHostError } from '@drydock/agent/site';
import type { GuardedChild, Isolation } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import { AppLog } from '../apps/app-log';
import type { AppNetwork } from '../apps/app-network';
import type { AppDatabase } from '../apps/app-process';
import { AppRunner } from '../apps/app-runner';
import type { SiteFolder } from '../on-disk/site-folder';
import type { Release } from '../releases/release-store';

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

/** The application of a site, across all its releases: its generation, and the time of its last restart. */
export class SiteApp {
  private readonly settings: SiteAppSettings;
  private readonly record = new SerialQueue();
  private readonly printed: AppLog;

  constructor(settings: SiteAppSettings) {
    this.settings = settings;
    this.printed = new AppLog(settings.folder.appLogFile);
  }

  /** Makes the runner for one release, with its folder and its database. */
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

  async describe(release: Release | null): Promise<AppDescription> {
    const { generation, last_restart_at } = await this.settings.folder.readApp();
    const has_app = release !== null && (await isPresent(release));
    return { has_app, generation, pid: release?.app.running?.pid ?? null, refusal: this.refusal, last_restart_at };
  }

  /**
   * Restarts the application by touching tmp/restart.txt, as a customer does. Throws `no_app`, `restart_blocked`,
   * `sandbox_unavailable`.
   */
  async restart(release: Release | null): Promise<RestartAnswer> {
    if (release === null || !(await isPresent(release))) throw new SiteHostError('no_app', 'the site has no app.js');
    if (this.refusal !== null)
      throw new SiteHostError(this.refusal, 'no application can be kept apart on this machine');
    const { folder } = this.settings;
    // No process may be counted between the touch and the reading of the count. A process that a visitor's request
    // starts in between is fresh, and must get a greater number.
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

const isPresent = async ({ app, content }: Release): Promise<boolean> =>
  app.running !== null || (await content.hasApp());
