/**
 * Places for clients that have not yet proved who they are. A newcomer always gets a place. When all places are taken,
 * the origin that has the most newcomers loses its oldest one. So nobody can keep others out by connecting and sending
 * nothing, and clients from other origins are not even disturbed.
 */
export class Newcomers {
  private readonly max: number;
  /** The functions that end each origin's newcomers, the oldest first. */
  private readonly here = new Map<string, Set<() => void>>();
  private size = 0;

  constructor(max: number) {
    this.max = max;
  }

  /**
   * Takes a place. The caller gives it back by calling the returned function, once the newcomer has proved who it is or
   * has gone. `end` is called when another newcomer needs the place.
   */
  add(origin: string, end: () => void): () => void {
    if (this.size >= this.max) this.endOldest();
    const newcomers = this.here.get(origin) ?? new Set();
    newcomers.add(end);
    this.here.set(origin, newcomers);
    this.size += 1;
    return () => this.remove(origin, end);
  }

  private endOldest(): void {
    let most: { origin: string; newcomers: Set<() => void> } | null = null;
    for (const [origin, newcomers] of this.here) {
      if (most === null || newcomers.size > most.newcomers.size) most = { origin, newcomers };
    }
    const [oldest] = most?.newcomers ?? [];
    if (most === null || oldest === undefined) return;
    this.remove(most.origin, oldest);
    oldest();
  }

  /** Harmless when its place was taken before. */
  private remove(origin: string, end: () => void): void {
    const newcomers = this.here.get(origin);
    if (newcomers?.delete(end) !== true) return;
    this.size -= 1;
    if (newcomers.size === 0) this.here.delete(origin);
  }
}
