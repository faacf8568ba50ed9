import { type ArchiveSource, segmentName } from '@drydock/archive';

/** The most readers of one archive at a time. Each thread that extracts the archive is a reader. */
const readersMax = 2;
/**
 * How many numbers of recently read segments are kept. A read is in order if the number of the segment before it is
 * among them.
 */
const recentMax = 16;

/**
 * Fetches segments ahead of readers that read them in order, because a storage answers later than a disk. At most
 * `ahead` segments for each reader wait in memory.
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
      // Probably the archive ends before `number`, so no segment from `number` on is fetched ahead any more. A reader
      // that needs such a segment after all asks the storage for it.
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

/** Null for an object that is no segment. */
function numberOf(name: string): number | null {
  const match = /^segment-(\d+)$/.exec(name);
  return match === null ? null : Number(match[1]);
}
