import { isFrontPageLost, type Skipped } from '@drydock/agent/site';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { z } from 'zod';

/** The most skipped paths that the view of a backup or a copy shows. */
export const sampleSize = 10;

/** The form in which a backup, a copy and their preflights show skipped paths. */
export const skippedSummarySchema = z.strictObject({
  count: z.int(),
  sample: z.array(z.strictObject({ path: z.string(), reason: z.string() })),
});
export type SkippedSummary = z.infer<typeof skippedSummarySchema>;

export const summarise = ({ count, paths }: Skipped): SkippedSummary => ({ count, sample: paths.slice(0, sampleSize) });

/** Warns of paths that a backup or a copy left out, or holds in a state that the site never had at one moment. */
export function findingsOfSkipped({ count, sample }: SkippedSummary): Finding[] {
  const [first] = sample;
  if (first === undefined) return [];
  const paths = count === 1 ? 'One path does' : `${count} paths do`;
  const change = count === 1 ? 'it was' : 'they were, such as';
  const some: Finding = {
    level: 'WARNING',
    code: 'paths_skipped',
    detail: `${paths} not come back as ${change}: ${first.path} (${first.reason}).`,
  };
  const front = sample.find(isFrontPageLost);
  if (front === undefined) return [some];
  const detail = `The front page is not in the backup: ${front.path} (${front.reason}).`;
  return [{ level: 'ERROR', code: 'front_page_skipped', detail }, some];
}

/** Warns of paths that the archive holds but the host could not restore completely. */
export function findingsOfLost({ count, paths }: Skipped): Finding[] {
  if (count === 0) return [];
  const named = paths.slice(0, sampleSize).map(({ path, reason }) => `${path} (${reason})`);
  const more = count > named.length ? `, and ${count - named.length} more` : '';
  return [
    {
      level: 'WARNING',
      code: 'paths_not_restored_whole',
      detail: `The backup holds more than the host could restore: ${named.join(', ')}${more}.`,
    },
  ];
}
