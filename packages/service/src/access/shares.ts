/**
 * A number of places of which nobody can take all. A holder may have as many as `share` times the places that are still
 * free. Alone with a share of 1 it gets half of them; two such holders get a third each, and the last third stays free
 * for the next one. Nothing is reserved by name and no holder is known beforehand, so a place costs one look at a map.
 */
export interface Shares {
  /** False if there is no place, or none for one of the holders. Give each place back once, with the same holders. */
  take(holders: readonly string[]): boolean;
  giveBack(holders: readonly string[]): void;
  readonly taken: number;
  readonly max: number;
}

/**
 * `shares` has one number for each level of holders: `[0.5, 1]` for a key and its organisation, in the order in which
 * `take` gets them. Every holder may have one place while any is free.
 */
export function createShares(max: number, shares: readonly number[]): Shares {
  const levels = shares.map((share) => ({ share, held: new Map<string, number>() }));
  let taken = 0;
  return {
    take: (holders) => {
      const free = max - taken;
      if (free <= 0) return false;
      for (const [index, { share, held }] of levels.entries()) {
        const has = held.get(holders[index] ?? '') ?? 0;
        if (has > 0 && has >= share * free) return false;
      }
      for (const [index, { held }] of levels.entries()) {
        const holder = holders[index] ?? '';
        held.set(holder, (held.get(holder) ?? 0) + 1);
      }
      taken += 1;
      return true;
    },
    giveBack: (holders) => {
      for (const [index, { held }] of levels.entries()) {
        const holder = holders[index] ?? '';
        const left = (held.get(holder) ?? 0) - 1;
        if (left > 0) held.set(holder, left);
        else held.delete(holder);
      }
      taken -= 1;
    },
    get taken() {
      return taken;
    },
    get max() {
      return max;
    },
  };
}
