/**
 * Places for those who have not proved yet who they are. A newcomer always gets one: when all are taken, whoever came first from where most came loses its own. So nobody
 * keeps others out by coming and saying nothing, and who comes from elsewhere is not even disturbed.
 */
export class Newcomers {
  private readonly max: number;
  /** For each origin what ends its newcomers, the oldest first. */
  private readonly here = new Map<string, Set<() => void>>();
  private size = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** A place, to be given back by calling what this returns, once the newcomer is known or gone. `end` is called when another one needs the place. */
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
