import { type ArchiveSource, segmentName } from '@drydock/archive';

/** The most readers of one archive at the same time. Each thread that extracts the archive is a reader. */
const readersMax = 2;
/**
 * How many of the last read segments are remembered. A read counts as in order if the segment before it is remembered.
 */
const recentMax = 16;

/**
 * Fetches segments ahead of a reader that reads them in order, because a storage takes longer to answer than a disk. At
 * most `ahead` segments for each reader wait in memory.
 */
export function readAhead(source: ArchiveSource, ahead: number): ArchiveSource {
  const waiting = new Map<number, Promise<Buffer>>();
  const recent = new Set([-1]);
  let end = Number.POSITIVE_INFINITY;

  const fetch = (number: number): void => {
    if (waiting.has(number) || recent.has(number) || number >= end) return;
    const bytes = source.read(segmentName(number));
    waiting.set(number, bytes);
    forgetOldest(waiting, ahead * readersMax);
    bytes.catch(() => {
      // The segment probably does not exist, so no segment from this number on is fetched ahead. If a reader needs such
      // a segment, it asks the storage again.
      end = Math.min(end, number);
      if (waiting.get(number) === bytes) waiting.delete(number);
    });
  };

  return {
    read: (name) => {
      const number = numberOf(name);
      if (number === null) return source.read(name);
      const isInOrder = recent.has(number - 1);
      recent.add(number);
      forgetOldest(recent, recentMax);
      const bytes = waiting.get(number) ?? source.read(name);
      waiting.delete(number);
      for (let next = number + 1; isInOrder && next <= number + ahead; next += 1) fetch(next);
      return bytes;
    },
  };
}

function forgetOldest(kept: Map<number, unknown> | Set<number>, max: number): void {
  for (const oldest of kept.keys()) if (kept.size > max) kept.delete(oldest);
}

/** The number of a segment; null for any other object. */
function numberOf(name: string): number | null {
  const match = /^segment-(\d+)$/.exec(name);
  return match === null ? null : Number(match[1]);
}
