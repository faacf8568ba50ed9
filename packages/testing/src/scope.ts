import { missingTools } from '@drydock/process/testing/needs';
import { z } from 'zod';
import type { CrashOptions } from './crash-every-step';

/**
 * The extent of a test run (DRYDOCK_TESTS). `quick` is the extent of `npm test`. `all` is that of `npm run test:all`
 * and of a suite that is run by hand. `chaos` (`npm run chaos`) runs everything for hours with new seeds. `effects` is
 * set by hand and gives each crash case a separate run.
 */
const scope = z.enum(['quick', 'all', 'effects', 'chaos']).parse(process.env['DRYDOCK_TESTS'] ?? 'all');
const isQuick = scope === 'quick';
export const isChaos = scope === 'chaos';

export type QueueBackend = 'redis' | 'postgres';

/**
 * Returns the queue backends for `describe.each(queueBackends())`: the one that QUEUE_BACKEND names, or both. If the
 * PATH has neither Redis nor Valkey, prints so and returns only Postgres, or throws if CI is `true`.
 */
export function queueBackends(): QueueBackend[] {
  const forced = process.env['QUEUE_BACKEND'];
  if (forced === 'redis' || forced === 'postgres') return [forced];
  const missing = missingTools('redis');
  if (missing === '') return ['redis', 'postgres'];
  process.stderr.write(`The queue is tested on Postgres only${missing}\n`);
  return ['postgres'];
}

/**
 * Returns the backends for the suites of services. `npm test` uses only one backend here, because the suites of
 * @drydock/workflow test both.
 */
export const serviceBackends = (): QueueBackend[] => (isQuick ? queueBackends().slice(0, 1) : queueBackends());

/**
 * Returns the backends for crash suites of services: in chaos all, otherwise only one, because the suites of
 * @drydock/workflow crash on all backends.
 */
export const crashBackends = (): QueueBackend[] => (isChaos ? queueBackends() : queueBackends().slice(0, 1));

/**
 * Jest's time limit for all cases of a workflow, in milliseconds. `crashEveryStep` gives up slightly earlier and ends
 * its workers, so only a hang reaches this limit.
 */
export const crashLimitMs = isChaos ? 3_600_000 : 900_000;

interface CrashScope {
  /** The steps whose repeated or late effect would do the most harm. The long suites also repeat and freeze them. */
  delicate?: readonly string[];
  /**
   * Matches the cases to leave out, because their fault point is already passed while a run is prepared, or is not
   * reached in time.
   */
  never?: RegExp;
  /** Matches the only cases that run in the extent `all`, for a workflow whose cases would take too long together. */
  onlyInCi?: RegExp;
  /** True if the workflow's deadline is too short for a run that combines several deaths. */
  isHasty?: boolean;
}

/**
 * Returns the options of `crashEveryStep` for a workflow. In chaos nearly all of its cases run. Otherwise repetitions
 * and freezes run only for `delicate` steps, unless `onlyInCi` selects the cases.
 */
export function crashScope({ delicate = [], never, onlyInCi, isHasty = false }: CrashScope = {}): CrashOptions {
  const isDelicate = (name: string): boolean => delicate.some((step) => name.includes(`.${step}.`));
  const isEffect = (name: string): boolean => !/^(?:stop|repeat) /.test(name) || isDelicate(name);
  const isWanted = (name: string): boolean => {
    if (isChaos) return true;
    if (scope === 'effects') return isEffect(name);
    return onlyInCi?.test(name) ?? isEffect(name);
  };
  return {
    inFewRuns: !isChaos && scope !== 'effects' && !isHasty,
    profile: isChaos ? 'full' : 'effects',
    // `finish.before` is left out, because every workflow passes it, also a workflow that only prepares a run.
    only: (name) => !name.includes('finish.before') && never?.test(name) !== true && isWanted(name),
  };
}
