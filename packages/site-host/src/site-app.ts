import { errorCodeOf } from '@drydock/host-kit/error-code';
import { SerialQueue } from '@drydock/host-kit/serial-queue';
import type { Log } from '@drydock/service-kit/log';
import { AppRunner } from './app-runner';
import type { AppDescription, RestartAnswer } from './protocol';
import type { Release } from './release';
import { NotAFile, touchRestartFile } from './restart-file';
import type { SiteFolder } from './site-folder';
import { SiteHostError } from './site-host-error';

interface SiteAppSettings {
  folder: SiteFolder;
  /** The site's account; null: this process' own. */
  uid: number | null;
  log: Log;
}

const blockingCodes = ['ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO'];

function refuseBlocked(error: unknown): never {
  if (!(error instanceof NotAFile) && !blockingCodes.includes(errorCodeOf(error))) throw error;
  throw new SiteHostError('restart_blocked', 'tmp or tmp/restart.txt is a link, or not what it must be', { cause: error });
}

/** The application of a site over all its releases: which generation it is at, and when it was last restarted. */
export class SiteApp {
  private readonly settings: SiteAppSettings;
  private readonly record = new SerialQueue();

  constructor(settings: SiteAppSettings) {
    this.settings = settings;
  }

  /** For one release: its folder, its database. */
  openRunner(filesDir: string, databaseUrl: string): AppRunner {
    const { folder, uid, log } = this.settings;
    return new AppRunner({ filesDir, databaseUrl, logFile: folder.appLogFile, uid }, { next: () => this.nextGeneration() }, log);
  }

  async describe(release: Release | null): Promise<AppDescription> {
    const { generation, last_restart_at } = await this.settings.folder.readApp();
    return { has_app: (await release?.app.isPresent()) ?? false, generation, pid: release?.app.running?.pid ?? null, last_restart_at };
  }

  /** By the customer's own means: whoever looks at tmp/restart.txt next sees it. Throws `no_app` and `restart_blocked`. */
  async restart(release: Release | null): Promise<RestartAnswer> {
    if (release === null || !(await release.app.isPresent())) throw new SiteHostError('no_app', 'the site has no app.js');
    const { uid, folder } = this.settings;
    // No process is counted between the touch and the count: one that a visitor's request starts meanwhile is fresh, and has to have a greater number.
    return this.record.run(async () => {
      const restarted_at = new Date().toISOString();
      await touchRestartFile(release.filesDir, uid === null ? null : { uid, gid: uid }, Date.parse(restarted_at)).catch(refuseBlocked);
      const { generation } = await folder.readApp();
      await folder.writeApp({ generation, last_restart_at: restarted_at });
      return { restarted_at, generation };
    });
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
