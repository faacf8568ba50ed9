import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';

/** The result of one suite: a line of the log that `packages/testing/jest/reporter.cjs` writes. */
const suiteSchema = z.object({
  file: z.string(),
  seconds: z.number(),
  passed: z.int(),
  failed: z.array(z.string()),
  error: z.string().nullable(),
  skipped: z.array(z.string()),
});
export type Suite = z.infer<typeof suiteSchema>;

/** The extent of a run: `quick` has the suites of tier `gate`, `all` also those of `long`, and `chaos` all suites. */
export type Scope = 'quick' | 'all' | 'chaos';

interface Pragmas {
  tier: 'gate' | 'long' | 'chaos';
  processes: boolean;
  /**
   * The command that runs the suite as root: `npm test -- --as-root` (gate), or only `npm run test:all -- --as-root`
   * (long).
   */
  root: 'gate' | 'long' | null;
}
const { readPragmas } = require(path.resolve('packages/testing/jest/pragmas.cjs')) as {
  readPragmas: (file: string) => Pragmas;
};

export const isBroken = ({ failed, error }: Suite): boolean => failed.length > 0 || error !== null;
export const mayRunAgain = ({ file }: Suite): boolean => readPragmas(file).processes;
export const rootOf = (file: string): Pragmas['root'] => readPragmas(file).root;

/** Lists the suites of a scope, as sorted paths relative to the root of the repository. */
export function listSuites(scope: Scope): string[] {
  const { stdout, status, stderr } = spawnSync('jest', ['--listTests', '--json'], {
    encoding: 'utf8',
    env: { ...process.env, DRYDOCK_TESTS: scope },
  });
  if (status !== 0) throw new Error(`jest could not list the suites: ${stderr}`);
  const files = z.array(z.string()).parse(JSON.parse(stdout));
  return files.map((file) => path.relative(process.cwd(), file)).sort();
}

export interface RunOptions {
  scope: Scope;
  args?: readonly string[];
  /** The file to which each suite's result is appended. */
  log: string;
  /** The file to which each passed crash case appends a line. */
  crashCases: string;
}

/** Runs Jest in a child process, which writes directly to the terminal. Resolves with the exit code of Jest. */
export function runJest(files: readonly string[], { scope, args = [], log, crashCases }: RunOptions): Promise<number> {
  const reporters = ['--reporters=default', `--reporters=${path.resolve('packages/testing/jest/reporter.cjs')}`];
  const paths = files.length === 0 ? [] : ['--runTestsByPath', ...files];
  const env = { ...process.env, DRYDOCK_TESTS: scope, DRYDOCK_SUITE_LOG: log, DRYDOCK_CRASH_CASES: crashCases };
  // The reporters come last, because Jest would read a path after `--reporters` as the name of another reporter.
  const child = spawn('jest', [...args, ...paths, ...reporters], { stdio: ['ignore', 'inherit', 'inherit'], env });
  return new Promise((resolve) => {
    child.on('error', () => resolve(1));
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/** Reads the results in a log. An incomplete line, which a killed run can leave, is ignored. */
export function readSuites(log: string): Suite[] {
  if (!fs.existsSync(log)) return [];
  return fs
    .readFileSync(log, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [suiteSchema.parse(JSON.parse(line))];
      } catch {
        return [];
      }
    });
}

export const scratchFile = (name: string): string =>
  path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-tests-')), name);
