import { performance } from 'node:perf_hooks';
import { logWith, type StepDefinition } from '../definition/definition';
import type { AttemptEnd } from './attempt';
import { type Execution, rowOf } from './execution';

/**
 * Logs the begin of an attempt at a step, or at its undo. The returned function logs how it ended and how long it took;
 * `total_ms` counts from the step's first start. A step that waits for an agent is run every few seconds: those runs
 * are logged at debug, and so is work that the clock begins every minute, so that an installation's log has each piece
 * of work once.
 */
export function logAttempt<Context, Tx>(
  { definition, claim, log, claimedAtMs }: Execution<Context, Tx>,
  { name }: StepDefinition<Context, Tx>,
  { what, attempt }: { what: 'step' | 'undo'; attempt: number },
): (end: AttemptEnd<unknown>['end']) => void {
  const row = rowOf(claim, name);
  const isLook = what === 'step' && row !== undefined && row.attempts > row.failures && claim.consecutive_crashes === 0;
  const levelOf = (isQuiet: boolean): 'debug' | 'info' => (isQuiet || definition.isRoutine === true ? 'debug' : 'info');
  const told = logWith(log, { step: name, attempt });
  const startedAtMs = performance.now();
  told[levelOf(isLook)]({}, `${what} started`);
  return (end) => {
    const nowMs = performance.now();
    const earlierMs = row === undefined || row.attempts === 0 ? 0 : row.age_seconds * 1_000 + startedAtMs - claimedAtMs;
    const took = {
      duration_ms: Math.round(nowMs - startedAtMs),
      total_ms: Math.round(nowMs - startedAtMs + earlierMs),
    };
    told[levelOf(end === 'wait')]({ end, ...took }, `${what} ended`);
  };
}
