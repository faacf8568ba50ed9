/** The most that one site gets, however quiet the others are. */
const perSiteMax = 20;
/** How many sessions that lost their place to others may be on their way out at once. */
const leavingMax = 10;

/**
 * The sites' share of the cluster's connections, by max-min fairness: a site gets what it asks for up to twenty, and when all are taken, a site
 * that has fewer than another gets one of that other's. So no number of greedy sites keeps the next one out, whatever their roles may have.
 */
export class ConnectionBudget {
  private readonly total: number;
  /** For each site what ends its sessions, the oldest first. */
  private readonly held = new Map<string, (() => void)[]>();
  private readonly leaving = new Set<() => void>();
  private used = 0;

  constructor(total: number) {
    this.total = total;
  }

  /** A place for one more session, to be given back by calling what this returns, once its backend has ended; null when the site has its share. `end` is called when another site needs it more. */
  take(siteId: string, end: () => void): (() => void) | null {
    const mine = this.held.get(siteId)?.length ?? 0;
    if (mine >= perSiteMax) return null;
    if (this.used >= this.total && !this.takeFromRichest(mine)) return null;
    const sessions = this.held.get(siteId) ?? [];
    sessions.push(end);
    this.held.set(siteId, sessions);
    this.used += 1;
    return () => this.giveBack(siteId, end);
  }

  private takeFromRichest(mine: number): boolean {
    let richest: { siteId: string; sessions: (() => void)[] } | null = null;
    for (const [siteId, sessions] of this.held) {
      if (richest === null || sessions.length > richest.sessions.length) richest = { siteId, sessions };
    }
    const newest = richest?.sessions.at(-1);
    // With one more the asking site may have as many as the other one keeps, not more: nobody would come to rest.
    if (richest === null || newest === undefined || richest.sessions.length <= mine + 1) return false;
    if (this.leaving.size >= leavingMax) return false;
    this.giveBack(richest.siteId, newest);
    this.leaving.add(newest);
    newest();
    return true;
  }

  /** Harmless when it was taken away before. */
  private giveBack(siteId: string, end: () => void): void {
    this.leaving.delete(end);
    const sessions = this.held.get(siteId) ?? [];
    const at = sessions.indexOf(end);
    if (at === -1) return;
    sessions.splice(at, 1);
    this.used -= 1;
    if (sessions.length === 0) this.held.delete(siteId);
  }
}
