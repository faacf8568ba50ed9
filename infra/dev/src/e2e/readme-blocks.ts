import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { repoRoot } from '../dev-config';

/** A block that a reader would paste into a shell: one that is fenced as `sh` in a README or a guide. */
export interface Block {
  page: string;
  line: number;
  text: string;
  /** `<!-- needs: docker -->` above it: something that no test provides. Such a block is only parsed. */
  needs: string | undefined;
  /** `<!-- beside: npm run dev keys -->` above it: what has to run at the same time. */
  beside: string | undefined;
}

export interface Outcome {
  exitCode: number;
  stdout: string;
  stderr: string;
}

const blockPattern = /(?:^<!-- (needs|beside): (.+) -->\n)?^```sh\n([\s\S]*?)^```$/gm;
const blockTimeoutMs = 240_000;

function readBlocks(page: string): Block[] {
  const text = fs.readFileSync(path.join(repoRoot, page), 'utf8');
  return [...text.matchAll(blockPattern)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    text: match[3] ?? '',
    needs: match[1] === 'needs' ? match[2] : undefined,
    beside: match[1] === 'beside' ? match[2] : undefined,
  }));
}

/** Every README and guide. */
export function listPages(): string[] {
  const patterns = ['README.md', '*/README.md', 'docs/guides/*.md'];
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: repoRoot,
    encoding: 'utf8',
  });
  return output.split('\n').filter(Boolean);
}

/**
 * Every block of every README and guide. `npm start` and `npm test` themselves are not run: whoever runs the other
 * blocks starts them.
 */
export const listBlocks = (): Block[] =>
  listPages()
    .flatMap(readBlocks)
    .filter(({ text }) => !/^npm (start|test)\b/.test(text));

const otherFence = /^```(?!sh\n)(\S*)\n([\s\S]*?)^```$/gm;
const aCommand = /^(?:\$ |(?:npm|npx|node|curl|git|drydock|docker|kubectl|helm) \S)/m;

/** Lines of a page that a reader would paste, but that no test runs because their block is not fenced as `sh`. */
export function hiddenCommands(page: string): string[] {
  const text = fs.readFileSync(path.join(repoRoot, page), 'utf8').replace(/^```sh\n[\s\S]*?^```$/gm, '');
  return [...text.matchAll(otherFence)].flatMap(([, , block = '']) => {
    const line = aCommand.exec(block)?.[0];
    return line === undefined ? [] : [`${page}: ${line}`];
  });
}

/** Runs a block as a shell runs pasted text: a line that fails does not end it. */
export function runBlock(block: Block, folder: string, environment: NodeJS.ProcessEnv): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { cwd: folder, env: environment, timeout: blockTimeoutMs, maxBuffer: 64 << 20 };
    execFile('bash', ['-c', block.text], options, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ exitCode, stdout, stderr });
    });
  });
}

const broken = /^\s+at .+:\d+:\d+\)?$|\w*Error:|command not found|curl: \(\d+\)|syntax error/m;

/** Whether a shell can parse it. */
export function isParsable({ text }: Block): boolean {
  return spawnSync('bash', ['-n'], { input: text }).status === 0;
}

/**
 * The problems that a reader would have with the block; empty if it did what it says. A refusal is fine if the block
 * names its code.
 */
export function complaintsOf(block: Block, { exitCode, stdout, stderr }: Outcome): string[] {
  const refusals = [...stdout.matchAll(/"type":\s*"\/problems\/([a-z_]+)"/g)].map((match) => match[1] ?? '');
  const complaints = [
    ...(exitCode === 0 ? [] : [`ends with ${exitCode}`]),
    ...(broken.test(stderr) ? [`says ${stderr.slice(0, 1_000)}`] : []),
    ...refusals.filter((code) => !block.text.includes(code)).map((code) => `is refused with ${code}`),
    ...(/"status":"(failed|cancelled|needs_attention)"|^(failed|cancelled|undefined)$/m.test(stdout)
      ? [`fails: ${stdout.slice(-1_000)}`]
      : []),
  ];
  return complaints.map((complaint) => `${block.page}:${block.line} ${complaint}`);
}

/**
 * Runs the examples in the README of @drydock/client one after the other against a demo. Rejects unless they print what
 * the README says.
 */
export async function runClientExamples({ base_url, live_key }: { base_url: string; live_key: string }): Promise<void> {
  const readme = fs.readFileSync(path.join(repoRoot, 'packages/client/README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
  const env = { PATH: process.env['PATH'], DRYDOCK_URL: base_url, DRYDOCK_KEY: live_key };
  // Runs in this folder, so that the package is found by its name.
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', blocks.join('\n')], {
    cwd: __dirname,
    env,
    timeout: blockTimeoutMs,
  });
  assert.ok(blocks.length > 4);
  assert.match(stdout, /, live\n/);
  assert.match(stdout, /running, \d+ %\n(?:.*\n)*succeeded, 100 %\n/);
  assert.match(stdout, /backup_not_found /);
}
