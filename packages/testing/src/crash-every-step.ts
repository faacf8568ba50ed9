import type { ChildProcess } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CrashCase, type CrashDefinition, type CrashProfile, crashCases, inFewRuns } from './crash-case';
import { createFaultTokens, type FaultTokens } from './fault-tokens';
import { fenceViolations, type LedgerEntry, repetitionViolations } from './ledger';
import { until } from './wait';
import { keepWorkers, type WorkerCrew } from './worker-crew';

/** A file that gets a line for each case that held, for the run's last lines to tell their number. */
const countedIn = process.env['DRYDOCK_CRASH_CASES'];

/** What the record says of a run. */
export interface CrashLook {
  status: string;
  steps: readonly { name: string; status: string; attempts: number }[];
  /** Unfinished workflows of the run's resource. */
  unfinished: number;
  /** Audit rows of the run (I8), where the service writes any; must be 1. */
  auditRows?: number;
}

/** How a service's workflow is started, watched and judged. Each run gets a resource of its own. */
export interface CrashFixture<Run extends { workflowId: string }> {
  /** Seconds; 1 or 2, since a killed worker's run waits for it. */
  leaseSeconds: number;
  /** How long an undisturbed run takes at most, beside other suites on a busy machine; a disturbed one gets ten leases more. Default: 40. */
  runSecondsMax?: number;
  /** A real worker process, from dist, with `environment` on top of its own. */
  spawnWorker(environment: { DRYDOCK_FAULTS: string }): ChildProcess;
  /** A fresh resource in its OLD state, and a workflow started on it. */
  start(): Promise<Run>;
  look(run: Run): Promise<CrashLook>;
  /** Everything that the target did, for all runs, as it wrote it down itself. Never empty: preparing a run leaves a line. */
  ledger(): Promise<readonly LedgerEntry[]>;
  /** Looks at the resource itself. Throws when it is neither wholly OLD nor wholly NEW. */
  judge(run: Run): Promise<'old' | 'new'>;
  /** Writes of zombies that were refused so far, where they can be counted; a freeze must add to it. */
  refusedWrites?(): Promise<number>;
}

export interface CrashReport {
  cases: { name: string; ms: number; state: 'old' | 'new' }[];
}

export interface CrashOptions {
  /** Default: `short`. */
  profile?: CrashProfile;
  only?: (name: string) => boolean;
  /** Many deaths in one run, instead of a run for each. */
  inFewRuns?: boolean;
}

/**
 * Kills, freezes, repeats and fails every step of a workflow, each in a run of its own, with real processes. Checks I1 to I4 and I8, that the resource is OLD or NEW
 * as the outcome says, and that every fault was met. Throws one error that names every case that failed; the first is its cause.
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
  try {
    const wanted = crashCases(definition, options.profile ?? 'short').filter(({ name }) => options.only?.(name) !== false);
    for (const crashCase of options.inFewRuns === true ? inFewRuns(wanted) : wanted) {
      const startedMs = performance.now();
      try {
        const state = await runCase(crashCase, fixture, tokens, crew);
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
    throw new Error(failures.map(({ name, error }) => `${name}: ${error instanceof Error ? error.message : String(error)}`).join('\n'), {
      cause: failures[0]?.error,
    });
  return report;
}

async function runCase<Run extends { workflowId: string }>(
  crashCase: CrashCase,
  fixture: CrashFixture<Run>,
  tokens: FaultTokens,
  crew: WorkerCrew,
): Promise<'old' | 'new'> {
  const refusedBefore = (await fixture.refusedWrites?.()) ?? 0;
  for (const { point, mode, times } of crashCase.arm) tokens.arm(point, mode, times);
  const run = await fixture.start();
  if (crashCase.freezes) await freezePastLease(fixture, tokens, crew);
  const look = await settled(crashCase, fixture, run);
  assert(tokens.left().length === 0, `the workflow never came by ${tokens.left().join(', ')}`);
  if (crashCase.freezes && fixture.refusedWrites !== undefined) {
    await until(async () => ((await fixture.refusedWrites?.()) ?? 0) > refusedBefore, {
      timeoutMs: fixture.leaseSeconds * 5_000,
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

/** A worker stops itself at the point; another one has to take over before it comes back as a zombie. */
async function freezePastLease<Run extends { workflowId: string }>(
  fixture: CrashFixture<Run>,
  tokens: FaultTokens,
  crew: WorkerCrew,
): Promise<void> {
  await until(() => tokens.left().length === 0 && crew.frozen().length > 0, { timeoutMs: 60_000, what: 'the freeze' });
  await sleep(3 * fixture.leaseSeconds * 1_000);
  crew.thaw();
}

/** I1: every accepted workflow comes to an end within ten leases (and what its crashes cost in restarts). */
async function settled<Run extends { workflowId: string }>(crashCase: CrashCase, fixture: CrashFixture<Run>, run: Run): Promise<CrashLook> {
  const leases = 10 + 5 * (crashCase.names?.length ?? 0);
  const timeoutMs = (fixture.leaseSeconds * leases + (fixture.runSecondsMax ?? 40)) * 1_000;
  let last: CrashLook | undefined;
  const isOver = async (): Promise<boolean> => {
    last = await fixture.look(run);
    assert(last.unfinished <= 1, `${last.unfinished} unfinished workflows on one resource`);
    return ['succeeded', 'failed', 'needs_attention'].includes(last.status);
  };
  await until(isOver, { timeoutMs, everyMs: 50, what: `the end of ${crashCase.name}` });
  if (last === undefined) throw new Error('nothing was seen of the run');
  return last;
}

function checkLook(crashCase: CrashCase, look: CrashLook): void {
  assert(look.status === crashCase.expect, `ended as ${look.status}, not ${crashCase.expect}: ${JSON.stringify(look.steps)}`);
  assert(look.unfinished === (look.status === 'needs_attention' ? 1 : 0), `${look.unfinished} unfinished workflows are left`);
  assert(look.auditRows === undefined || look.auditRows === 1, `${look.auditRows} audit rows`);
  const step = look.steps.find(({ name }) => name === crashCase.step);
  assert(step !== undefined, `the step ${crashCase.step} is not on record`);
  if (crashCase.attempts !== undefined)
    assert(step?.attempts === crashCase.attempts, `${crashCase.step} was begun ${step?.attempts} times, not ${crashCase.attempts}`);
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
