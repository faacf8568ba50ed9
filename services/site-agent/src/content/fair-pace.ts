/** The length of a turn: there are a hundred a second. */
const turnMs = 10;

/**
 * Limits how much is done in a second, in turns of ten milliseconds: by default 8,000 in all, and 4,000 for an
 * organisation. The rest waits for the next turn, in which the organisations go one after the other.
 */
export class FairPace {
  private readonly max: number;
  private readonly share: number;
  private readonly used = new Map<string, number>();
  private usedInAll = 0;
  private readonly waiting = new Map<string, (() => void)[]>();
  private timer: NodeJS.Timeout | undefined;

  constructor({ max = 80, share = 40 }: { max?: number; share?: number } = {}) {
    this.max = max;
    this.share = share;
  }

  /** Calls `go` now, or in a later turn. */
  take(organisation: string, go: () => void): void {
    this.timer ??= setInterval(() => this.turn(), turnMs).unref();
    const waiting = this.waiting.get(organisation);
    if (waiting !== undefined) waiting.push(go);
    else if (this.mayGo(organisation)) this.go(organisation, go);
    else this.waiting.set(organisation, [go]);
  }

  private mayGo(organisation: string): boolean {
    return this.usedInAll < this.max && (this.used.get(organisation) ?? 0) < this.share;
  }

  private go(organisation: string, go: () => void): void {
    this.used.set(organisation, (this.used.get(organisation) ?? 0) + 1);
    this.usedInAll += 1;
    go();
  }

  private turn(): void {
    if (this.waiting.size === 0 && this.usedInAll === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    this.used.clear();
    this.usedInAll = 0;
    for (const [organisation, waiting] of this.waiting) {
      if (!this.mayGo(organisation)) continue;
      // An organisation that was served goes behind the others, and gets its next turn after them, now or in the next
      // turn.
      this.waiting.delete(organisation);
      const next = waiting.shift();
      if (waiting.length > 0) this.waiting.set(organisation, waiting);
      if (next !== undefined) this.go(organisation, next);
    }
  }
}
