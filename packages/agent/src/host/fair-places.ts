interface Waiting {
  /** The order of arrival. It decides between owners that hold the same number of places. */
  number: number;
  enter(): void;
}

/**
 * Limits how much work runs at the same time: each piece of work takes a place, and organisations share the places. An
 * organisation gets another place only while it holds fewer places than are free. So a single organisation gets half of
 * the places, and a new organisation usually finds a free place. If several organisations wait, the organisation with
 * the fewest places comes first.
 */
export class FairPlaces {
  private free: number;
  private lastNumber = 0;
  private readonly held = new Map<string, number>();
  private readonly waiting = new Map<string, Waiting[]>();

  constructor(places: number) {
    this.free = places;
  }

  /**
   * Takes a place, or waits for one. Resolves with a function that gives the place back and must be called once.
   * Rejects with the signal's reason if the signal is aborted while the call waits.
   */
  async take(owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      this.lastNumber += 1;
      const leave = (): void => {
        this.stopWaiting(owner, waiting);
        reject(signal.reason);
      };
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const waiting = { number: this.lastNumber, enter };
      this.waiting.set(owner, [...(this.waiting.get(owner) ?? []), waiting]);
      signal.addEventListener('abort', leave, { once: true });
      this.admit();
    });
    return () => this.giveBack(owner);
  }

  /**
   * Takes a place without waiting. Returns a function that gives the place back and must be called once. Returns null
   * if the owner has its whole share already, or if other work of the owner waits.
   */
  takeNow(owner: string): (() => void) | null {
    if (this.waiting.has(owner) || !this.mayTake(owner)) return null;
    this.hold(owner);
    return () => this.giveBack(owner);
  }

  /** Returns how many calls of {@link take} of this owner wait. */
  waitingOf(owner: string): number {
    return this.waiting.get(owner)?.length ?? 0;
  }

  heldBy(owner: string): number {
    return this.held.get(owner) ?? 0;
  }

  /**
   * Returns the number of places that must be given back before the owner may take another place. If the owner holds
   * places, the number is for places that this owner gives back. If the owner holds none, any owner may give them back.
   */
  shortOf(owner: string): number {
    const held = this.heldBy(owner);
    if (this.mayTake(owner)) return 0;
    return held === 0 ? 1 - this.free : Math.floor((held - this.free) / 2) + 1;
  }

  private mayTake(owner: string): boolean {
    return this.heldBy(owner) < this.free;
  }

  private hold(owner: string): void {
    this.held.set(owner, this.heldBy(owner) + 1);
    this.free -= 1;
  }

  private giveBack(owner: string): void {
    const left = this.heldBy(owner) - 1;
    if (left === 0) this.held.delete(owner);
    else this.held.set(owner, left);
    this.free += 1;
    this.admit();
  }

  private stopWaiting(owner: string, one: Waiting): void {
    const others = (this.waiting.get(owner) ?? []).filter((other) => other !== one);
    if (others.length === 0) this.waiting.delete(owner);
    else this.waiting.set(owner, others);
  }

  private admit(): void {
    for (let next = this.nextOne(); next !== null; next = this.nextOne()) {
      this.stopWaiting(next.owner, next.first);
      this.hold(next.owner);
      next.first.enter();
    }
  }

  private nextOne(): { owner: string; first: Waiting } | null {
    let next: { owner: string; first: Waiting } | null = null;
    for (const [owner, [first]] of this.waiting) {
      if (first === undefined || !this.mayTake(owner)) continue;
      const fewer = next === null ? -1 : this.heldBy(owner) - this.heldBy(next.owner);
      if (next === null || fewer < 0 || (fewer === 0 && first.number < next.first.number)) next = { owner, first };
    }
    return next;
  }
}
