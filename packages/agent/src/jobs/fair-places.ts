interface Waiting {
  owner: string;
  enter(): void;
}

/**
 * Places of a host's jobs, fair between organisations: one takes a place only while it holds fewer than are free. Alone it gets half of them, and
 * whoever comes next finds one at once, however long the others' jobs take. Of those that wait, the one that holds the fewest goes first.
 */
export class FairPlaces {
  private free: number;
  private readonly held = new Map<string, number>();
  private readonly waiting: Waiting[] = [];

  constructor(places: number) {
    this.free = places;
  }

  /** Resolves with what gives the place back, to be called once. Rejects with the signal's reason. */
  async take(owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.waiting.splice(this.waiting.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const waiting = { owner, enter };
      this.waiting.push(waiting);
      signal.addEventListener('abort', leave, { once: true });
      this.admit();
    });
    return () => {
      const left = this.heldBy(owner) - 1;
      if (left === 0) this.held.delete(owner);
      else this.held.set(owner, left);
      this.free += 1;
      this.admit();
    };
  }

  private heldBy(owner: string): number {
    return this.held.get(owner) ?? 0;
  }

  private admit(): void {
    for (let next = this.nextOne(); next !== undefined; next = this.nextOne()) {
      this.waiting.splice(this.waiting.indexOf(next), 1);
      this.held.set(next.owner, this.heldBy(next.owner) + 1);
      this.free -= 1;
      next.enter();
    }
  }

  /** The sort keeps the order of those that hold equally many: they came in it. */
  private nextOne(): Waiting | undefined {
    const [poorest] = this.waiting.toSorted((left, right) => this.heldBy(left.owner) - this.heldBy(right.owner));
    return poorest !== undefined && this.heldBy(poorest.owner) < this.free ? poorest : undefined;
  }
}
