import type { Entry } from './entry';

/**
 * Time of an entry as file calls take it: seconds with a fraction. Node keeps microseconds and cuts off the rest; half a microsecond is added
 * so that the rounding of the double never loses one.
 */
export function secondsOf(entry: Pick<Entry, 'mtimeSeconds' | 'mtimeNanoseconds'>): number {
  const microseconds = Math.floor(entry.mtimeNanoseconds / 1000);
  return microseconds === 0 ? entry.mtimeSeconds : entry.mtimeSeconds + (microseconds + 0.5) / 1e6;
}
