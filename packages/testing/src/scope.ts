import { missingTools } from '@drydock/process/testing/needs';
import { z } from 'zod';
import type { CrashOptions } from './crash-every-step';

/**
 * The extent of a run (DRYDOCK_TESTS). `quick` is the gate, which `npm test` runs. `all` adds the long suites. `all` is
 * for `npm run test:all` and for suites that are named by hand. `effects` adds each death of the longest workflows in
 * its own run. `chaos` runs everything for hours with new seeds, as `npm run chaos` does. A suite declares its tier
 * itself. This file serves suites that do more in a later tier.
 */
const scope = z.enum(['quick', 'all', 'effects', 'chaos']).parse(process.env['DRYDOCK_TESTS'] ?? 'all');
const isQuick = scope === 'quick';
export const isChaos = scope === 'chaos';

export type QueueBackend = 'redis' | 'postgres';

/**
 * Returns the queue backends for `describe.each(queueBackends())`. QUEUE_BACKEND chooses one. By default both are
 * returned. If the PATH has no Redis and no Valkey, only Postgres is returned, and the run prints this fact.
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
 * Returns the backends for services' suites. The gate runs only one backend, because the queue's own suite runs both.
 */
export const serviceBackends = (): QueueBackend[] => (isQuick ? queueBackends().slice(0, 1) : queueBackends());

/** Returns the backends for a service's crashes. The tests of @drydock/workflow crash on all backends. */
export const crashBackends = (): QueueBackend[] => (isChaos ? queueBackends() : queueBackends().slice(0, 1));

/**
 * jest's limit for all cases of a workflow. The limit is generous, because only a hang should reach it.
 * `crashEveryStep` gives up slightly earlier and ends its workers.
 */
export const crashLimitMs = isChaos ? 3_600_000 : 900_000;

interface CrashScope {
  /** Steps whose repeated or late effect would harm most. Long suites also repeat and freeze these steps. */
  delicate?: readonly string[];
  /** Excluded cases. A prepared run also passes the point of such a case, or the case cannot be reached in time. */
  never?: RegExp;
  /** The only cases of the long suites for a workflow that takes too long. */
  onlyInCi?: RegExp;
  /** True if the workflow's deadline is too short for a run with several deaths. */
  isHasty?: boolean;
}

/** Returns the crash cases of a workflow: all in chaos, otherwise `onlyInCi` or the effects. */
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
    // Every workflow passes the last point, even a workflow that only prepares a run. So this point is excluded.
    only: (name) => !name.includes('finish.before') && never?.test(name) !== true && isWanted(name),
  };
}
