import type { CrashOptions } from './crash-every-step';
import { type QueueBackend, queueBackends } from './queue-backends';

/** `full`, as `npm run chaos` sets it, or `effects`: those of the longest workflows too, which CI has no time for. */
const chaos = process.env['DRYDOCK_CHAOS'];
const isChaos = chaos !== undefined;

interface Scope {
  /** Steps whose doubled or late effect would be the worst: repeated, and frozen past their lease, in CI as well. */
  delicate?: readonly string[];
  /** A prepared run passes such a case's point too, or the case cannot be met in time. */
  never?: RegExp;
  /** All that CI takes of a workflow too long for more. */
  onlyInCi?: RegExp;
  /** Somebody waits for it so shortly that more than one death in a run makes it come too late. */
  isHasty?: boolean;
}

/** What `npm run chaos` takes of a workflow, hours in all, is everything; CI takes the `effects`. */
export function crashScope({ delicate = [], never, onlyInCi, isHasty = false }: Scope = {}): CrashOptions {
  const isDelicate = (name: string): boolean => delicate.some((step) => name.includes(`.${step}.`));
  const isEffect = (name: string): boolean => !/^(?:stop|repeat) /.test(name) || isDelicate(name);
  const isWanted = (name: string): boolean => {
    if (chaos === 'effects') return isEffect(name);
    return isChaos || (onlyInCi?.test(name) ?? isEffect(name));
  };
  return {
    inFewRuns: !isChaos && !isHasty,
    profile: isChaos && chaos !== 'effects' ? 'full' : 'effects',
    // Every workflow passes the last point, also those that prepare a run.
    only: (name) => !name.includes('finish.before') && never?.test(name) !== true && isWanted(name),
  };
}

/** The engine's own tests run on every backend; CI repeats a service's crashes on the first of them only. */
export const crashBackends = (): readonly QueueBackend[] => (isChaos ? queueBackends() : queueBackends().slice(0, 1));

/** Milliseconds for all cases of one workflow. */
export const crashLimitMs = isChaos ? 3_600_000 : 400_000;
