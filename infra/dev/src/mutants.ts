// `npm run mutants [-- NAME…]`: plants one defect after another in a copy of the working tree, and runs the suites of
// `npm test` that should find the defect. A defect that no suite finds shows a gap in `npm test`. With names, only
// these defects are planted. `--whole` runs every suite of `npm test` for each defect.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { readCommandLine } from '@drydock/process';
import { copyTree, packageOf } from './mutants/copy';
import { type Defect, defects, whyUnfit } from './mutants/defects';
import { isBroken, readSuites, type Suite, scratchFile } from './tests/suites';

const root = process.cwd();
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const secondsSince = (started: number): string => ((performance.now() - started) / 1000).toFixed(1);

function run(copy: string, command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const child = spawn(command, args, {
    cwd: copy,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk));
  const stop = (): void => void child.kill();
  process.once('exit', stop);
  return new Promise<{ code: number; output: string }>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      process.removeListener('exit', stop);
      resolve({ code: code ?? 1, output: Buffer.concat(said).toString() });
    });
  });
}

async function build(copy: string, files: Iterable<string>): Promise<void> {
  const { code, output } = await run(copy, 'tsc', ['-b', ...new Set([...files].map(packageOf))]);
  if (code !== 0) throw new Error(`the compiler finds it before any test does: ${output.trim()}`);
}

/** Runs the suites, or all of `npm test` if `files` is empty. Resolves with the suites that failed. */
async function runSuites(copy: string, files: readonly string[]): Promise<Suite[]> {
  const log = scratchFile('suites.jsonl');
  const reporter = `--reporters=${path.join(copy, 'packages/testing/jest/reporter.cjs')}`;
  const paths = files.length === 0 ? [] : ['--runTestsByPath', ...files];
  const { output } = await run(copy, 'jest', [reporter, ...paths], { DRYDOCK_TESTS: 'quick', DRYDOCK_SUITE_LOG: log });
  const suites = readSuites(log);
  fs.rmSync(path.dirname(log), { recursive: true });
  const missing = files.filter((file) => !suites.some((suite) => suite.file === file));
  if (suites.length === 0 || missing.length > 0)
    throw new Error(`jest did not run ${missing.join(' and ')}: ${output.trim()}`);
  return suites.filter(isBroken);
}

/**
 * Returns the failed tests as `file › title`, those of the expected suites first. Tests of the mutants themselves do
 * not count. They fail with any planted defect, because the text that the defect replaces is no longer in its file.
 */
function findsOf(suites: readonly Suite[], { suites: expected }: Defect): string[] {
  const broken = [...suites].sort(
    (left, right) => Number(expected.includes(right.file)) - Number(expected.includes(left.file)),
  );
  return broken.flatMap(({ file, failed }) =>
    file.startsWith('infra/dev/src/mutants') ? [] : failed.map((title) => `${file} › ${title}`),
  );
}

/**
 * Plants the defect, runs its suites and removes the defect. Resolves with the tests that found it. `alsoBuild` has the
 * file of the previous defect. The text of that file is restored, but its built code still has the previous defect. So
 * the file is built again.
 */
async function plant(copy: string, defect: Defect, alsoBuild: Iterable<string>, isWhole: boolean): Promise<string[]> {
  const file = path.join(copy, defect.file);
  const original = fs.readFileSync(file, 'utf8');
  fs.writeFileSync(
    file,
    original.replace(defect.replace, () => defect.with),
  );
  try {
    await build(copy, [...alsoBuild, defect.file]);
    return findsOf(await runSuites(copy, isWhole ? [] : defect.suites), defect);
  } finally {
    fs.writeFileSync(file, original);
  }
}

/**
 * Plants the defects one after another, and prints for each whether it was found. Resolves with the number of defects
 * that were not found.
 */
async function tryAll(copy: string, chosen: readonly Defect[], isWhole: boolean): Promise<number> {
  let failed = 0;
  let planted: string[] = [];
  for (const defect of chosen) {
    const started = performance.now();
    const tell = (verdict: string, what: string): void =>
      write(`${verdict} ${defect.name} (${secondsSince(started)} s): ${what}`);
    try {
      const [first, ...others] = await plant(copy, defect, planted, isWhole);
      if (first === undefined) failed += 1;
      if (first === undefined) tell('MISSED', `no test of ${isWhole ? 'the gate' : defect.suites.join(', ')} fails`);
      else tell('found ', `${first}${others.length > 0 ? ` (and ${others.length} more)` : ''}`);
    } catch (error) {
      failed += 1;
      tell('FAILED', error instanceof Error ? error.message : String(error));
    }
    planted = [defect.file];
  }
  return failed;
}

const usage = 'npm run mutants [-- [--whole] [DEFECT…]]';

async function main(): Promise<number> {
  const { values, positionals } = readCommandLine(usage, {
    options: { whole: { type: 'boolean', default: false } },
    wordsMax: defects.length,
  });
  const unknown = positionals.filter((name) => !defects.some((defect) => defect.name === name));
  if (unknown.length > 0)
    throw new Error(
      `There is no defect ${unknown.join(', ')}. There are: ${defects.map(({ name }) => name).join(', ')}.`,
    );
  const wanted = defects.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const unfit = wanted.flatMap((defect) => {
    const reason = whyUnfit(defect, root);
    return reason === null ? [] : [{ defect, reason }];
  });
  for (const { defect, reason } of unfit) write(`FAILED ${defect.name}: ${reason}`);
  const chosen = wanted.filter((defect) => !unfit.some((other) => other.defect === defect));
  const failed = unfit.length + (chosen.length === 0 ? 0 : await inCopy(chosen, values.whole));
  write(`${wanted.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/**
 * Resolves with the number of defects that were not found. First the suites must pass without a defect, because a suite
 * that fails anyway finds nothing.
 */
async function inCopy(chosen: readonly Defect[], isWhole: boolean): Promise<number> {
  const copy = copyTree(root);
  const started = performance.now();
  const broken = await runSuites(copy, isWhole ? [] : [...new Set(chosen.flatMap(({ suites }) => suites))]);
  for (const { file, failed, error } of broken) write(`FAILED without a defect: ${file} › ${error ?? failed[0]}`);
  if (broken.length > 0) return chosen.length;
  write(`Without a defect the suites pass (${secondsSince(started)} s)`);
  return tryAll(copy, chosen, isWhole);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1));
main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    write(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
