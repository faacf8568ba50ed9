/** The most sessions that one site gets, even if the other sites have none. */
const perSiteMax = 20;
/** Limit for sessions that have lost their place to another site and are still ending. */
const leavingMax = 10;

/**
 * Shares a server's connections between sites, by max-min fairness: a site gets what it asks for, up to twenty. When
 * all connections are taken, a site with fewer connections gets one from the site with the most. So greedy sites cannot
 * keep another site out.
 */
export class ConnectionBudget {
  private readonly total: number;
  /** The functions that end each site's sessions, the oldest first. */
  private readonly held = new Map<string, (() => void)[]>();
  private readonly leaving = new Set<() => void>();
  private used = 0;

  constructor(total: number) {
    this.total = total;
  }

  /**
   * Takes a place for one more session. Returns null if the site has its share already, or if too many displaced
   * sessions are still ending. The returned function gives the place back; the caller calls it once the backend has
   * ended. `end` is called when another site needs the place more.
   */
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
    // A site takes a place only from a site that has at least two more. Otherwise two sites would take places from each
    // other for ever.
    if (richest === null || newest === undefined || richest.sessions.length <= mine + 1) return false;
    if (this.leaving.size >= leavingMax) return false;
    this.giveBack(richest.siteId, newest);
    this.leaving.add(newest);
    newest();
    return true;
  }

  /** Gives the place back. A displaced session has no place any more, and is only removed from `leaving`. */
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
