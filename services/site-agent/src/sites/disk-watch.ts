import { FairPlaces } from '@drydock/agent/jobs';

/** Files are counted this often, so a site may exceed its limit in between. */
const everyMs = 5_000;
/**
 * A site that takes long to count is counted less often, in proportion: a tree of a million folders costs only its own
 * site.
 */
const restFactor = 10;
const lookMs = 1_000;
/** Sites that are counted at a time, shared between organisations. */
const countedAtOnce = 4;

export interface WatchedSite {
  readonly organisation: string;
  /** Counts its disk space, and acts on the result. */
  checkDisk(): Promise<void>;
}

/** Makes each site count its disk space, repeatedly. */
export class DiskWatch {
  private readonly sites: () => Iterable<WatchedSite>;
  private readonly onError: (error: unknown) => void;
  private readonly places = new FairPlaces(countedAtOnce);
  private readonly stopping = new AbortController();
  private readonly dueMs = new WeakMap<WatchedSite, number>();
  private readonly running = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(sites: () => Iterable<WatchedSite>, onError: (error: unknown) => void) {
    this.sites = sites;
    this.onError = onError;
  }

  start(): void {
    this.timer = setInterval(() => this.look(), lookMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await Promise.all(this.running);
  }

  private look(): void {
    for (const site of this.sites()) {
      if ((this.dueMs.get(site) ?? 0) > performance.now()) continue;
      this.dueMs.set(site, Number.POSITIVE_INFINITY);
      const run = this.check(site);
      this.running.add(run);
      void run.finally(() => this.running.delete(run));
    }
  }

  private async check(site: WatchedSite): Promise<void> {
    let tookMs = 0;
    try {
      const leave = await this.places.take(site.organisation, this.stopping.signal);
      const startedMs = performance.now();
      await site.checkDisk().finally(leave);
      tookMs = performance.now() - startedMs;
    } catch (error) {
      if (!this.stopping.signal.aborted) this.onError(error);
    }
    this.dueMs.set(site, performance.now() + everyMs + restFactor * tookMs);
  }
}
