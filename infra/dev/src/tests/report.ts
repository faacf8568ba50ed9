import type { Suite } from './suites';

const slowestShown = 20;

/** Prints the slowest suites with their seconds, and the skipped tests, whose titles say what they need. */
export function describeRun(suites: readonly Suite[], write: (line: string) => void): void {
  const slowest = [...suites].sort((left, right) => right.seconds - left.seconds).slice(0, slowestShown);
  write(
    `The slowest of ${suites.length} suites (${sum(suites.map(({ seconds }) => seconds)).toFixed(0)} s of suites in all):`,
  );
  for (const { file, seconds } of slowest) write(`  ${seconds.toFixed(1).padStart(6)} s  ${file}`);
  const skipping = suites.filter(({ skipped }) => skipped.length > 0);
  if (skipping.length > 0) write('Skipped:');
  for (const { file, skipped } of skipping) {
    const shown = skipped.length > 3 ? [...skipped.slice(0, 2), `and ${skipped.length - 2} more`] : skipped;
    for (const title of shown) write(`  ${file} › ${title}`);
  }
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
