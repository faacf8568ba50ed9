import type { ChildProcess } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { type CrashCase, type CrashDefinition, type CrashProfile, crashCases, inFewRuns } from './crash-case';
import { createFaultTokens, type FaultTokens } from './fault-tokens';
import type { Leases } from './leases';
import { fenceViolations, type LedgerEntry, repetitionViolations } from './ledger';
import { crashLimitMs } from './scope';
import { InvariantViolated, until } from './wait';
import { keepWorkers, type WorkerCrew } from './worker-crew';

/** The file to which each passed case appends a line, so that the test run can print the number of cases. */
const countedIn = process.env['DRYDOCK_CRASH_CASES'];

/** The state of one run, read from the service's database. */
export interface CrashLook {
  status: string;
  steps: readonly { name: string; status: string; attempts: number }[];
  /** The number of unfinished workflows on the run's resource. */
  unfinished: number;
  /** The number of the run's audit rows, which must be 1. Missing if the service writes no audit rows. */
  auditRows?: number;
}

/** The functions with which a service starts, reads and checks a workflow. Each run has its own resource. */
export interface CrashFixture<Run extends { workflowId: string }> {
  /** The leases in the service's database. With them a test ends the lease of a frozen worker. */
  leases: Leases;
  /** The time limit in seconds for a run on a busy machine. Each death adds 15 s. Default: 90. */
  runSecondsMax?: number;
  /**
   * Starts a worker process from dist with `environment` added to its own. When the worker is killed, the fixture ends
   * its leases, so that another worker takes over at once.
   */
  spawnWorker(environment: { DRYDOCK_FAULTS: string }): ChildProcess;
  /** Creates a resource in its OLD state, and starts a workflow on it. */
  start(): Promise<Run>;
  look(run: Run): Promise<CrashLook>;
  /**
   * Returns all effects of all runs, as their target recorded them. The list is never empty, because `start` has an
   * effect.
   */
  ledger(): Promise<readonly LedgerEntry[]>;
  /** Inspects the resource itself. Throws if one part of it is OLD and another part NEW. */
  judge(run: Run): Promise<'old' | 'new'>;
  /** Returns how many writes with a stale fence were refused so far. A frozen worker that continues causes one more. */
  refusedWrites?(): Promise<number>;
}

export interface CrashReport {
  cases: { name: string; ms: number; state: 'old' | 'new' }[];
}

export interface CrashOptions {
  /** Default: `short`. */
  profile?: CrashProfile;
  only?: (name: string) => boolean;
  /** True to combine deaths in two runs, which saves time; see the function `inFewRuns`. */
  inFewRuns?: boolean;
  /**
   * The time limit in milliseconds for all cases. It is lower than jest's limit, so that the workers end before the
   * next test. Default: 40 s less than `crashLimitMs`.
   */
  limitMs?: number;
}

/**
 * Kills, freezes, repeats and fails the steps of a workflow with real processes. After each case the workflow must have
 * ended as expected, and its resource must be wholly OLD or wholly NEW. No stale fence may have had an effect, and no
 * effect may have been repeated with another outcome. Throws one error that lists all failed cases.
 */
export async function crashEveryStep<Run extends { workflowId: string }>(
  definition: CrashDefinition,
  fixture: CrashFixture<Run>,
  options: CrashOptions = {},
): Promise<CrashReport> {
  const tokens = createFaultTokens();
  const crew = keepWorkers(2, () => fixture.spawnWorker({ DRYDOCK_FAULTS: tokens.folder }));
  const failures: { name: string; error: unknown }[] = [];
  const report: CrashReport = { cases: [] };
  const endsAtMs = performance.now() + (options.limitMs ?? crashLimitMs - 40_000);
  try {
    const wanted = crashCases(definition, options.profile ?? 'short').filter(
      ({ name }) => options.only?.(name) !== false,
    );
    for (const crashCase of options.inFewRuns === true ? inFewRuns(wanted) : wanted) {
      const startedMs = performance.now();
      try {
        const leftMs = endsAtMs - performance.now();
        if (leftMs <= 0) throw new Error('not run: the time for all cases is over');
        const state = await within(leftMs, runCase(crashCase, { fixture, tokens, crew, leftMs }));
        const ms = Math.round(performance.now() - startedMs);
        const names = crashCase.names ?? [crashCase.name];
        report.cases.push(...names.map((name) => ({ name, ms, state })));
        if (countedIn !== undefined) appendFileSync(countedIn, names.map((name) => `${name}\n`).join(''));
      } catch (error) {
        failures.push({ name: crashCase.name, error });
        tokens.clear();
        crew.thaw();
      }
    }
  } finally {
    await crew.close();
    tokens.remove();
  }
  if (failures.length > 0)
    throw new Error(
      failures
        .map(({ name, error }) => `${name}: ${error instanceof Error ? error.message : String(error)}`)
        .join('\n'),
      {
        cause: failures[0]?.error,
      },
    );
  return report;
}

interface Scene<Run extends { workflowId: string }> {
  fixture: CrashFixture<Run>;
  tokens: FaultTokens;
  crew: WorkerCrew;
  leftMs: number;
}

async function runCase<Run extends { workflowId: string }>(
  crashCase: CrashCase,
  scene: Scene<Run>,
): Promise<'old' | 'new'> {
  const { fixture, tokens, crew } = scene;
  const refusedBefore = (await fixture.refusedWrites?.()) ?? 0;
  for (const { point, mode, times } of crashCase.arm) tokens.arm(point, mode, times);
  // The wait for the freeze begins before `start`, because the preparation of a run may already pass the fault point.
  const freeze = crashCase.freezes ? expireFrozen(scene) : Promise.resolve(0n);
  freeze.catch(() => undefined);
  const run = await fixture.start();
  if (crashCase.freezes) {
    await untilOvertaken(crashCase, { fixture, run, fence: await freeze });
    crew.thaw();
  }
  const look = await untilEnded(crashCase, scene, run);
  assert(tokens.left().length === 0, `the workflow never came by ${tokens.left().join(', ')}`);
  if (crashCase.freezes && fixture.refusedWrites !== undefined) {
    await until(async () => ((await fixture.refusedWrites?.()) ?? 0) > refusedBefore, {
      timeoutMs: 60_000,
      what: 'the refusal of a zombie’s write',
    });
  }
  checkLook(crashCase, look);
  const entries = await fixture.ledger();
  assert(entries.length > 0, 'the ledger is empty: nothing that the target did can be judged');
  const wrong = [...fenceViolations(entries), ...repetitionViolations(entries)];
  assert(wrong.length === 0, wrong.join('; '));
  return checkState(crashCase, await fixture.judge(run));
}

/**
 * Waits until a worker has stopped itself at the fault point, and ends all leases. Resolves with the highest fence so
 * far.
 */
async function expireFrozen<Run extends { workflowId: string }>({
  fixture,
  tokens,
  crew,
}: Scene<Run>): Promise<bigint> {
  await until(() => tokens.left().length === 0 && crew.frozen().length > 0, {
    timeoutMs: 90_000,
    everyMs: 50,
    what: 'the freeze',
  });
  return fixture.leases.expire();
}

/**
 * Waits until another worker has finished the step with a higher fence, or the workflow has ended. If the frozen worker
 * continued earlier, its writes would not be stale.
 */
async function untilOvertaken<Run extends { workflowId: string }>(
  crashCase: CrashCase,
  { fixture, run, fence }: { fixture: CrashFixture<Run>; run: Run; fence: bigint },
): Promise<void> {
  const isOvertaken = async (): Promise<boolean> => {
    const { status, steps } = await fixture.look(run);
    if (isEnd(status)) return true;
    const isPast = steps.some((step) => step.name === crashCase.step && step.status === 'succeeded');
    return isPast && (await fixture.leases.fenceOf(run.workflowId)) > fence;
  };
  await until(isOvertaken, { timeoutMs: 90_000, everyMs: 50, what: 'another worker’s claim' });
}

const isEnd = (status: string): boolean => ['succeeded', 'failed', 'needs_attention'].includes(status);

/** Waits for the end of the workflow, which must come within the time limit despite all deaths. */
async function untilEnded<Run extends { workflowId: string }>(
  crashCase: CrashCase,
  { fixture, leftMs }: Scene<Run>,
  run: Run,
): Promise<CrashLook> {
  const deaths = crashCase.arm.reduce((sum, { mode, times }) => sum + (mode === 'kill' ? times : 0), 0);
  const timeoutMs = Math.min(leftMs, ((fixture.runSecondsMax ?? 90) + 15 * deaths) * 1_000);
  let last: CrashLook | undefined;
  const isOver = async (): Promise<boolean> => {
    last = await fixture.look(run).catch(rethrowAssertion);
    if (last.unfinished > 1) throw new InvariantViolated(`${last.unfinished} unfinished workflows on one resource`);
    return isEnd(last.status);
  };
  await until(isOver, { timeoutMs, everyMs: 50, what: `the end of ${crashCase.name}` });
  if (last === undefined) throw new Error('nothing was seen of the run');
  return last;
}

/**
 * Rethrows an error. A failed expectation of jest becomes an {@link InvariantViolated}, on which `until` gives up at
 * once.
 */
function rethrowAssertion(error: unknown): never {
  if (error instanceof Error && 'matcherResult' in error) throw new InvariantViolated(error.message, { cause: error });
  throw error;
}

/**
 * Waits for `work`, but rejects after `ms` milliseconds. `work` is not cancelled, because it does no harm once the
 * workers are gone.
 */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('not finished: the time for all cases is over')), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function checkLook(crashCase: CrashCase, look: CrashLook): void {
  assert(
    look.status === crashCase.expect,
    `ended as ${look.status}, not ${crashCase.expect}: ${JSON.stringify(look.steps)}`,
  );
  assert(
    look.unfinished === (look.status === 'needs_attention' ? 1 : 0),
    `${look.unfinished} unfinished workflows are left`,
  );
  assert(look.auditRows === undefined || look.auditRows === 1, `${look.auditRows} audit rows`);
  const step = look.steps.find(({ name }) => name === crashCase.step);
  assert(step !== undefined, `the step ${crashCase.step} is not on record`);
  if (crashCase.attempts !== undefined)
    assert(
      step?.attempts === crashCase.attempts,
      `${crashCase.step} was begun ${step?.attempts} times, not ${crashCase.attempts}`,
    );
  if (crashCase.expect !== 'succeeded')
    assert(step?.status === 'failed', `the failure is not recorded at ${crashCase.step} but it is ${step?.status}`);
}

function checkState(crashCase: CrashCase, state: 'old' | 'new'): 'old' | 'new' {
  if (crashCase.expect === 'succeeded') assert(state === 'new', 'succeeded, but the resource is OLD');
  if (crashCase.expect === 'failed') assert(state === 'old', 'failed, but the resource is NEW');
  return state;
}

function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
