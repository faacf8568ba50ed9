import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { InjectedFault } from '@drydock/process';
import { logWith, type StepDefinition } from '../definition/definition';
import {
  LeaseLost,
  messageOf,
  StepFailure,
  StepTimeout,
  StepWait,
  type WorkflowProblem,
} from '../definition/step-error';
import { type Execution, rowOf } from './execution';

/** The end of one attempt at a step, at its undo or at its checkpoint. */
export type AttemptEnd<T> =
  | { end: 'done'; value: T }
  | { end: 'failed'; problem: WorkflowProblem; error: unknown }
  | { end: 'again'; error: unknown }
  | { end: 'wait'; seconds: number }
  /** The process is stopping, and the step has stopped at a safe place or has not begun. */
  | { end: 'interrupted' }
  /**
   * The lease is lost, or the process is stopping and the step has ignored its signal. Nothing may be written any more.
   */
  | { end: 'left' };

interface AttemptLimits {
  name: string;
  timeoutSeconds: number;
  lease: AbortSignal;
  stopping: AbortSignal;
}

/** How long a step may take to reach a safe place after its signal was aborted, in milliseconds. */
const stopGraceMs = 8_000;

/**
 * Runs `work` and returns how it ended. The signal is aborted when the lease is lost, when the process begins to stop,
 * or when the step's time is up. Never rejects.
 */
export async function attempt<T>(
  limits: AttemptLimits,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<AttemptEnd<T>> {
  if (limits.lease.aborted) return { end: 'left' };
  if (limits.stopping.aborted) return { end: 'interrupted' };
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new StepTimeout(limits.name, limits.timeoutSeconds)),
    limits.timeoutSeconds * 1_000,
  );
  const { signal, part } = joinSignals([limits.lease, limits.stopping, late.signal]);
  try {
    const running = caught(() => work(signal));
    const first = await Promise.race([running, aborted(signal)]);
    const end = first ?? (await Promise.race([running, wait(stopGraceMs, undefined, { ref: false })]));
    return endOf(end, limits, late.signal);
  } finally {
    clearTimeout(timer);
    part();
  }
}

type Caught<T> = { ok: true; value: T } | { ok: false; error: unknown };

async function caught<T>(work: () => Promise<T>): Promise<Caught<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error };
  }
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });

function endOf<T>(result: Caught<T> | undefined, limits: AttemptLimits, late: AbortSignal): AttemptEnd<T> {
  if (limits.lease.aborted) return { end: 'left' };
  // Work that completes after its time was up still counts.
  if (result?.ok) return { end: 'done', value: result.value };
  const error = result?.error;
  if (error instanceof LeaseLost) return { end: 'left' };
  const problem = definite(error);
  if (problem !== undefined) return { end: 'failed', problem, error };
  if (error instanceof StepWait) return { end: 'wait', seconds: error.seconds };
  if (limits.stopping.aborted) return { end: result === undefined ? 'left' : 'interrupted' };
  return { end: 'again', error: late.aborted ? late.reason : error };
}

function definite(error: unknown): WorkflowProblem | undefined {
  if (error instanceof StepFailure) return { internal: error.message, ...error.problem };
  return error instanceof InjectedFault ? { code: 'step_failed', internal: messageOf(error) } : undefined;
}

interface JoinedSignal {
  /** Aborted with the reason of the source that was aborted first. */
  signal: AbortSignal;
  /**
   * Removes the listeners from the sources. It must be called once the signal is no longer needed. Otherwise the
   * sources keep the signal in memory for as long as they exist.
   */
  part(): void;
}

/**
 * Joins several signals into one. Node 20 never frees the signal of `AbortSignal.any` once it has had a listener,
 * unless a source is aborted. A worker would lose 2 kB with each step that it runs.
 */
function joinSignals(sources: readonly AbortSignal[]): JoinedSignal {
  const joined = new AbortController();
  const forward = (): void => joined.abort(sources.find((source) => source.aborted)?.reason);
  for (const source of sources) source.addEventListener('abort', forward, { once: true });
  if (sources.some((source) => source.aborted)) forward();
  return {
    signal: joined.signal,
    part: () => {
      for (const source of sources) source.removeEventListener('abort', forward);
    },
  };
}

/**
 * Logs the start of an attempt at a step or at its undo. The returned function logs how the attempt ended and how long
 * it took; `total_ms` counts from the step's first start.
 *
 * Two kinds of repetition are logged at debug, so that they do not fill a log at info: a step that waits for an agent
 * runs every few seconds, and a schedule starts a routine workflow (`isRoutine`) every minute.
 */
export function logAttempt<Context, Tx>(
  { definition, claim, log, claimedAtMs }: Execution<Context, Tx>,
  { name }: StepDefinition<Context, Tx>,
  { what, attempt }: { what: 'step' | 'undo'; attempt: number },
): (end: AttemptEnd<unknown>['end']) => void {
  const row = rowOf(claim, name);
  const isPoll = what === 'step' && row !== undefined && row.attempts > row.failures && claim.consecutive_crashes === 0;
  const levelOf = (isQuiet: boolean): 'debug' | 'info' => (isQuiet || definition.isRoutine === true ? 'debug' : 'info');
  const told = logWith(log, { step: name, attempt });
  const startedAtMs = performance.now();
  told[levelOf(isPoll)]({}, `${what} started`);
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
