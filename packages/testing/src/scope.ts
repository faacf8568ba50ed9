import { missingTools } from '@drydock/process/testing/needs';
import { z } from 'zod';
import type { CrashOptions } from './crash-every-step';

/**
 * The extent of a run, by DRYDOCK_TESTS. `quick`: `npm test`, the gate. `all`: `npm run test:all`, with the suites of
 * `@tier long`, and any suite that is named by hand. `effects`: also each death of the longest workflows in a run of
 * its own. `chaos`: `npm run chaos`, hours of everything, with new seeds. Each suite declares its own tier. This file
 * is for suites that do more in a later tier.
 */
const scope = z.enum(['quick', 'all', 'effects', 'chaos']).parse(process.env['DRYDOCK_TESTS'] ?? 'all');
const isQuick = scope === 'quick';
export const isChaos = scope === 'chaos';

export type QueueBackend = 'redis' | 'postgres';

/**
 * The queue backends on which tests run, for `describe.each(queueBackends())`: both, or only Postgres where no Redis or
 * Valkey is on the PATH (which is printed), or the one that QUEUE_BACKEND names.
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
 * The backends for the services' suites: in the gate only one of them, because the queue's own suite always runs on
 * each.
 */
export const serviceBackends = (): QueueBackend[] => (isQuick ? queueBackends().slice(0, 1) : queueBackends());

/** The backends on which a service's crashes run. The engine's own crashes run on all of them. */
export const crashBackends = (): QueueBackend[] => (isChaos ? queueBackends() : queueBackends().slice(0, 1));

/**
 * jest's limit for all cases of one workflow: when to give up, not how long they take. `crashEveryStep` gives up a
 * little earlier, and ends its workers.
 */
export const crashLimitMs = isChaos ? 3_600_000 : 900_000;

interface CrashScope {
  /**
   * Steps whose doubled or late effect would do the most harm. They are repeated, and frozen past their lease, in CI as
   * well.
   */
  delicate?: readonly string[];
  /** Cases to leave out, because a prepared run passes their point too, or because they cannot be reached in time. */
  never?: RegExp;
  /** All the cases that CI runs of a workflow that is too long for more. */
  onlyInCi?: RegExp;
  /** The workflow has a short deadline, which a run with more than one death would miss. */
  isHasty?: boolean;
}

/** The crash cases of a workflow: all of them in chaos, `onlyInCi` or the effects in CI, otherwise the effects. */
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
    // Every workflow passes the last point, including those that prepare a run.
    only: (name) => !name.includes('finish.before') && never?.test(name) !== true && isWanted(name),
  };
}
