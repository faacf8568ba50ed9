// The program of `npm test` (the checks and the suites of tier `gate`), `npm run test:all` (also tier `long`), `npm run
// chaos` (all tiers, for hours) and `npm run check` (only the checks). With a PATTERN it runs the matching suites of
// the tiers `gate` and `long`. With `--as-root` it runs the suites marked `@root`, and in `test:all` also those marked
// `@root long`. The last line is `N passed, N failed`. A check counts as one test.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { readCommandLine } from '@drydock/process';
import { runChecks } from './tests/checks';
import { describeRun, sum } from './tests/report';
import {
  isBroken,
  listSuites,
  mayRunAgain,
  readSuites,
  rootOf,
  runJest,
  type Scope,
  type Suite,
  scratchFile,
} from './tests/suites';

/** If more suites than this fail, none is run a second time. */
const flakySuitesMax = 2;

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const write = (line: string): void => void process.stdout.write(`${line}\n`);

const options = {
  'checks-only': { type: 'boolean', default: false },
  'as-root': { type: 'boolean', default: false },
  all: { type: 'boolean', default: false },
  chaos: { type: 'boolean', default: false },
  /** `n/m` runs the n-th of m parts of the suites. */
  shard: { type: 'string' },
  /** Runs all suites, including those that passed in an earlier run on the same sources. */
  afresh: { type: 'boolean', default: false },
} as const;

const usage =
  'npm test [-- [--as-root] [PATTERN…]], npm run test:all [-- [--as-root] [--shard N/M] [--afresh]], npm run chaos, npm run chaos:load, npm run check';

async function main(): Promise<number> {
  const { values, positionals } = readCommandLine(usage, { options, wordsMax: Number.POSITIVE_INFINITY });
  const isSelected = positionals.length > 0 || values['as-root'];
  const scope: Scope = values.chaos ? 'chaos' : values.all || isSelected ? 'all' : 'quick';
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const started = performance.now();
  if (!values.chaos && !isSelected) {
    const checked = await runChecks(write);
    counts.passed += checked.passed;
    counts.failed += checked.failed;
    write(`Checks: ${secondsSince(started)} s`);
  }
  // A failed check ends the run before the suites, so that an error of format or types is reported within a minute.
  if (counts.failed === 0 && !values['checks-only']) add(counts, await runSuites(scope, values, positionals));
  const wholeSince = Number(process.env['DRYDOCK_COMMAND_STARTED_MS']);
  if (wholeSince > 0) write(`With install and build: ${((Date.now() - wholeSince) / 1000).toFixed(0)} s`);
  write(`${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`);
  return counts.failed === 0 ? 0 : 1;
}

async function runSuites(
  scope: Scope,
  values: { 'as-root': boolean; all: boolean; shard?: string; afresh: boolean },
  patterns: readonly string[],
): Promise<Counts> {
  const started = performance.now();
  const crashCases = scratchFile('crash-cases');
  fs.writeFileSync(crashCases, '');
  const isResumed = scope !== 'quick' && patterns.length === 0 && !values['as-root'];
  const log = isResumed ? resumableLog(scope, values.afresh) : scratchFile('suites.jsonl');
  const before = readSuites(log).filter((suite) => !isBroken(suite));
  const files = patterns.length > 0 ? [] : suitesToRun(scope, values, new Set(before.map(({ file }) => file)));
  if (before.length > 0)
    write(`${before.length} suites passed in an earlier run of the same files; --afresh runs them again`);
  if (files.length === 0 && patterns.length === 0) {
    if (before.length === 0) throw new Error('There is no suite to run');
    return counted(before, []);
  }

  const code = await runJest(files, { scope, log, crashCases, args: patterns });
  const ran = latestOf(readSuites(log)).filter(({ file }) => !before.some((suite) => suite.file === file));
  const { suites, flaky } = await giveSecondChances(ran, { scope, log, crashCases });
  describeRun(suites, write);
  for (const line of flaky) write(`FLAKY ${line}`);
  const cases = fs.readFileSync(crashCases, 'utf8').split('\n').length - 1;
  if (cases > 0) write(`${cases} crash cases were run`);
  write(`Suites: ${secondsSince(started)} s`);
  const counts = counted([...before, ...suites], files);
  const isUnexplained = code !== 0 && !ran.some(isBroken);
  if (isUnexplained) write(`jest ended with ${code} although no suite failed`);
  return { ...counts, failed: counts.failed + (isUnexplained ? 1 : 0) };
}

function suitesToRun(
  scope: Scope,
  { 'as-root': asRoot, all: isAll, shard }: { 'as-root': boolean; all: boolean; shard?: string },
  done: ReadonlySet<string>,
): string[] {
  if (asRoot) {
    if (process.getuid?.() !== 0) throw new Error('npm test -- --as-root is for root: an ordinary user runs npm test');
    return listSuites('all').filter((file) => rootOf(file) === 'gate' || (isAll && rootOf(file) === 'long'));
  }
  const [part, parts] = (shard ?? '1/1').split('/').map(Number);
  if (!part || !parts || part > parts) throw new Error(`--shard takes n/m, such as 1/3; this is ${shard}`);
  return listSuites(scope)
    .filter((_, index) => index % parts === part - 1)
    .filter((file) => !done.has(file));
}

/**
 * Runs each failed suite that has `@processes` a second time, alone. A suite that then passes is reported as flaky and
 * does not fail the run.
 */
async function giveSecondChances(
  ran: Suite[],
  run: { scope: Scope; log: string; crashCases: string },
): Promise<{ suites: Suite[]; flaky: string[] }> {
  const broken = ran.filter(isBroken);
  if (broken.length === 0 || broken.length > flakySuitesMax) return { suites: ran, flaky: [] };
  const flaky: string[] = [];
  for (const suite of broken.filter(mayRunAgain)) {
    write(`Once more, alone: ${suite.file}`);
    // Jest runs a single suite within its own process. The open handles of a failed test would keep that process alive.
    if ((await runJest([suite.file], { ...run, args: ['--forceExit'] })) !== 0) continue;
    flaky.push(
      ...(suite.failed.length > 0 ? suite.failed : ['(could not be loaded)']).map(
        (title) => `${suite.file} › ${title}`,
      ),
    );
  }
  const names = new Set(ran.map(({ file }) => file));
  return { suites: latestOf(readSuites(run.log)).filter(({ file }) => names.has(file)), flaky };
}

const latestOf = (suites: readonly Suite[]): Suite[] => [
  ...new Map(suites.map((suite) => [suite.file, suite])).values(),
];

function counted(suites: readonly Suite[], wanted: readonly string[]): Counts {
  const told = new Set(suites.map(({ file }) => file));
  const missing = wanted.filter((file) => !told.has(file));
  for (const file of missing) write(`${file} did not run to its end`);
  return {
    passed: sum(suites.map(({ passed }) => passed)),
    failed: sum(suites.map(({ failed, error }) => Math.max(failed.length, error === null ? 0 : 1))) + missing.length,
    skipped: sum(suites.map(({ skipped }) => skipped.length)),
  };
}

/**
 * Returns the log of a run, from which an interrupted run continues. Its name contains a digest of the sources, so that
 * an edit or a commit starts a new log.
 */
function resumableLog(scope: Scope, afresh: boolean): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  const untracked = git('ls-files', '--others', '--exclude-standard').split('\n').filter(Boolean);
  const digest = createHash('sha256').update(git('rev-parse', 'HEAD')).update(git('diff', 'HEAD'));
  for (const file of untracked) digest.update(file).update(fs.readFileSync(file));
  const folder = path.resolve('node_modules/.cache/drydock-tests');
  fs.mkdirSync(folder, { recursive: true });
  const log = path.join(folder, `${scope}-${digest.digest('hex').slice(0, 16)}.jsonl`);
  if (afresh) fs.rmSync(log, { force: true });
  return log;
}

const secondsSince = (started: number): string => ((performance.now() - started) / 1000).toFixed(0);

function add(counts: Counts, more: Counts): void {
  counts.passed += more.passed;
  counts.failed += more.failed;
  counts.skipped += more.skipped;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    write(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
