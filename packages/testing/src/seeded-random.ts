import { isChaos } from './scope';

export class SeededRandom {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Returns a number from 0 (included) to 1 (excluded), by mulberry32. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from 0 (included) to `end` (excluded). */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  isChosen(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.below(from.length)];
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }

  /** Returns up to `count` different items in random order. */
  pickSome<T>(from: readonly T[], count: number): T[] {
    const left = [...from];
    const picked: T[] = [];
    while (picked.length < count && left.length > 0) picked.push(...left.splice(this.below(left.length), 1));
    return picked;
  }
}

/**
 * The seed for fast-check: `fc.assert(property, seeded)`. The seed is fixed, so that only a change of the code makes a
 * test fail. `npm run chaos` uses new seeds. fast-check prints the seed of a failure, and DRYDOCK_SEED sets it again.
 */
export const seeded = { seed: Number(process.env['DRYDOCK_SEED'] ?? (isChaos ? Date.now() % 2 ** 31 : 1)) };

export interface Sample {
  seed: number;
  count: number;
}

/**
 * Returns the seed and the number of cases for a test that generates its cases, and prints them. Outside of `npm run
 * chaos` the cases are few and fixed, so that only a change of the code makes the test fail. DRYDOCK_SEED and
 * DRYDOCK_CASES repeat a run.
 */
export function sampleOf(what: string, { inCi, inChaos }: { inCi: number; inChaos: number }): Sample {
  const seed = Number(process.env['DRYDOCK_SEED'] ?? (isChaos ? Date.now() % 2 ** 32 : 1));
  const count = Number(process.env['DRYDOCK_CASES'] ?? (isChaos ? inChaos : inCi));
  process.stderr.write(`${what}: ${count} cases of DRYDOCK_SEED=${seed}\n`);
  return { seed, count };
}
