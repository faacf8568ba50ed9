import { setTimeout as wait } from 'node:timers/promises';
import { scaled } from '@drydock/process/time-out-scale';
import { type Answer, answerOf } from '../http/answer';
import type { Log } from '../telemetry/log';

/** The conditions for the process to be of use, by name. A check that rejects or takes over a second has failed. */
export type ReadyChecks = Readonly<Record<string, () => Promise<unknown>>>;

const checkMs = 1_000;

async function outcomeOf(
  name: string,
  check: () => Promise<unknown>,
  log: Log,
): Promise<'ok' | 'failed' | 'timed_out'> {
  const timer = new AbortController();
  const late = wait(scaled(checkMs), 'timed_out' as const, { signal: timer.signal, ref: false }).catch(
    () => 'timed_out' as const,
  );
  const done = Promise.resolve()
    .then(check)
    .then(
      () => 'ok' as const,
      (error: unknown) => {
        log.warn({ err: error, check: name }, 'not ready');
        return 'failed' as const;
      },
    );
  const outcome = await Promise.race([done, late]);
  timer.abort();
  if (outcome === 'timed_out') log.warn({ check: name }, 'not ready: no answer in time');
  return outcome;
}

/** Alive: the event loop runs. It does not check dependencies, so that a lost database does not restart the process. */
export const answerHealth = (): Answer => answerOf({ status: 200, body: { status: 'ok' } });

/**
 * Ready: send requests here. Otherwise 503 with the outcome of each check, but never the reason, which is in the log.
 * `informative` checks are only reported, because just a part of the requests needs them.
 */
export async function answerReady(
  checks: ReadyChecks,
  isClosing: boolean,
  log: Log,
  informative: ReadyChecks = {},
): Promise<Answer> {
  const outcomes = await Promise.all(
    Object.entries({ ...checks, ...informative }).map(
      async ([name, check]) => [name, await outcomeOf(name, check, log)] as const,
    ),
  );
  const ready = !isClosing && outcomes.every(([name, outcome]) => outcome === 'ok' || name in informative);
  const status = isClosing ? 'closing' : ready ? 'ready' : 'not_ready';
  return answerOf({ status: ready ? 200 : 503, body: { status, checks: Object.fromEntries(outcomes) } });
}
