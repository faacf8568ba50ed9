// `npm test`: format, lint, types, import rules, then the tests, without the suites of packages/testing/long-suites.cjs and with services on one queue.
// `npm run test:all` leaves out nothing; `npm run chaos` takes hours. `npm test -- PATTERN` runs the suites that it names, whole.
// Each ends in `N passed, N failed`, where each check counts as one.
// `npm test -- --as-root` runs only the tests that an ordinary user's run leaves out or cannot prove.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';

interface Check {
  name: string;
  command: string;
  args: string[];
}

const checks: Check[] = [
  { name: 'format and lint (biome)', command: 'biome', args: ['ci', '--colors=off', '.'] },
  { name: 'lint with types (oxlint)', command: 'oxlint', args: ['--type-aware', '--deny-warnings'] },
  { name: 'types, those of the tests too (tsc)', command: 'tsc', args: ['-b'] },
  { name: 'import rules (turbo boundaries)', command: 'turbo', args: ['boundaries'] },
  { name: 'docker-compose.yml and its secrets (npm run compose)', command: 'node', args: ['infra/dev/dist/compose.js', '--check'] },
  { name: 'the Helm chart (npm run helm)', command: 'node', args: ['infra/dev/dist/helm.js', '--check'] },
  { name: 'unused files, exports and dependencies (knip)', command: 'knip', args: ['--no-progress'] },
];

/** The part of jest's report that is counted. A suite that cannot even be loaded has no tests and still failed. */
const reportSchema = z.looseObject({
  numPassedTests: z.int(),
  numFailedTests: z.int(),
  numPendingTests: z.int(),
  numRuntimeErrorTestSuites: z.int(),
});

const write = (line: string): void => void process.stdout.write(`${line}\n`);

/** Runs to the end and keeps what it says, for a failure to be shown whole. */
function capture({ command, args }: Check): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error) => resolve({ code: 1, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString() }));
  });
}

async function runChecks(): Promise<{ passed: number; failed: number }> {
  let failed = 0;
  for (const check of checks) {
    const started = performance.now();
    const { code, output } = await capture(check);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    write(`${code === 0 ? 'ok    ' : 'FAILED'} ${check.name} (${seconds} s)`);
    if (code !== 0) {
      failed += 1;
      write(output);
    }
  }
  return { passed: checks.length - failed, failed };
}

/** The test files that ask who runs them: they leave something out for an ordinary user, or prove something else as root. */
function filesForRoot(): string[] {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.test.ts'], { encoding: 'utf8' });
  return files.split('\n').filter((file) => file !== '' && fs.existsSync(file) && asksWhoRuns.test(fs.readFileSync(file, 'utf8')));
}
const asksWhoRuns = /\b(getuid\?\.\(\)|detectIsolation|isRoot|canMountSmallDisk)/;

/** jest in a process of its own; its own report goes to the terminal as it comes. */
async function runJest(args: string[], scope: string): Promise<{ passed: number; failed: number; skipped: number; crashCases: number }> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-jest-'));
  const report = path.join(folder, 'report.json');
  const crashCases = path.join(folder, 'crash-cases');
  fs.writeFileSync(crashCases, '');
  const env = { ...process.env, DRYDOCK_TESTS: scope, DRYDOCK_CRASH_CASES: crashCases };
  try {
    const child = spawn('jest', ['--json', `--outputFile=${report}`, '--forceExit', ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env,
    });
    const code = await new Promise<number>((resolve) => child.on('close', (status) => resolve(status ?? 1)));
    if (!fs.existsSync(report)) return { passed: 0, failed: 1, skipped: 0, crashCases: 0 };
    const counts = reportSchema.parse(JSON.parse(fs.readFileSync(report, 'utf8')));
    const failed = counts.numFailedTests + counts.numRuntimeErrorTestSuites;
    return {
      passed: counts.numPassedTests,
      failed: failed === 0 && code !== 0 ? 1 : failed,
      skipped: counts.numPendingTests,
      crashCases: fs.readFileSync(crashCases, 'utf8').split('\n').length - 1,
    };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function main(args: string[]): Promise<number> {
  const flags = new Set<string>(args.filter((arg) => ['--checks-only', '--all', '--chaos', '--as-root'].includes(arg)));
  const jestArgs = args.filter((arg) => !flags.has(arg));
  const scope = flags.has('--chaos') ? 'chaos' : flags.has('--all') || jestArgs.length > 0 ? 'all' : 'quick';
  if (flags.has('--as-root')) {
    if (process.getuid?.() !== 0) throw new Error('npm test -- --as-root is for root: an ordinary user runs npm test');
    jestArgs.push('--runTestsByPath', ...filesForRoot());
  }
  const checked = flags.has('--chaos') || jestArgs.length > 0 ? { passed: 0, failed: 0 } : await runChecks();
  const tested = await runJest(flags.has('--checks-only') ? ['packages/testing/src/conventions'] : jestArgs, scope);
  const failed = checked.failed + tested.failed;
  if (tested.crashCases > 0) write(`${tested.crashCases} crash cases were run`);
  write(`${checked.passed + tested.passed} passed, ${failed} failed${tested.skipped > 0 ? `, ${tested.skipped} skipped` : ''}`);
  return failed === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    write(String(error));
    process.exit(1);
  },
);
