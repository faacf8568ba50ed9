/**
 * The places of a limited resource, such as the open streams of a process. No single holder can use them up, because a
 * holder may have at most its share times the number of free places; see {@link createShares}. With a share of 1, a
 * single holder gets half of the places. Two such holders get a third each, and a third stays free for the next holder.
 */
export interface Shares {
  /**
   * Takes a place. Returns false if none is free, or if one of `holders` uses its whole share. Each place must be given
   * back once, with the same holders.
   */
  take(holders: readonly string[]): boolean;
  giveBack(holders: readonly string[]): void;
  readonly taken: number;
  readonly max: number;
}

/**
 * Divides `max` places fairly. `shares` has one number for each level of holders, in the order in which `take` gets
 * them, such as `[0.5, 1]` for a key and its organisation. A holder may have at most its level's share of the free
 * places. A share never refuses a holder its first place.
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
