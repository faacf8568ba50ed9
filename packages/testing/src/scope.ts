import { missingTools } from '@drydock/process/testing/needs';
import { z } from 'zod';
import type { CrashOptions } from './crash-every-step';

/**
 * How much is run, by DRYDOCK_TESTS. `quick`: `npm test`, the gate. `all`: `npm run test:all`, with the suites of `@tier long`, and a suite that is named by hand.
 * `effects`: with each death of the longest workflows in a run of its own. `chaos`: `npm run chaos`, hours of everything, with new seeds. Which tier a suite belongs to is
 * said by the suite itself; what is here is for a suite that has more of the same in a later tier.
 */
const scope = z.enum(['quick', 'all', 'effects', 'chaos']).parse(process.env['DRYDOCK_TESTS'] ?? 'all');
const isQuick = scope === 'quick';
export const isChaos = scope === 'chaos';

export type QueueBackend = 'redis' | 'postgres';

/**
 * The queue backends that tests run over, for `describe.each(queueBackends())`: both, or only Postgres where no Redis or Valkey is on the PATH (and says so), or the one
 * that QUEUE_BACKEND names.
 */
export function queueBackends(): QueueBackend[] {
  const forced = process.env['QUEUE_BACKEND'];
  if (forced === 'redis' || forced === 'postgres') return [forced];
  const missing = missingTools('redis');
  if (missing === '') return ['redis', 'postgres'];
  process.stderr.write(`The queue is tested on Postgres only${missing}\n`);
  return ['postgres'];
}

/** The backends that the gate needs one of: the queue's own suite runs on each of them always. */
export const serviceBackends = (): QueueBackend[] => (isQuick ? queueBackends().slice(0, 1) : queueBackends());

/** The backends that a service's crashes run on: the engine's own run on all of them. */
export const crashBackends = (): QueueBackend[] => (isChaos ? queueBackends() : queueBackends().slice(0, 1));

/** jest's limit for all cases of one workflow: when to give up, not how long they take. `crashEveryStep` gives up a little earlier and ends its workers. */
export const crashLimitMs = isChaos ? 3_600_000 : 900_000;

interface CrashScope {
  /** Steps whose doubled or late effect would be the worst: repeated, and frozen past their lease, in CI as well. */
  delicate?: readonly string[];
  /** A prepared run passes such a case's point too, or the case cannot be met in time. */
  never?: RegExp;
  /** All that CI takes of a workflow too long for more. */
  onlyInCi?: RegExp;
  /** Somebody waits for it so shortly that more than one death in a run makes it come too late. */
  isHasty?: boolean;
}

/** The crash cases of a workflow: everything in chaos, hours in all; the `effects` otherwise. */
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
    // Every workflow passes the last point, also those that prepare a run.
    only: (name) => !name.includes('finish.before') && never?.test(name) !== true && isWanted(name),
  };
}
