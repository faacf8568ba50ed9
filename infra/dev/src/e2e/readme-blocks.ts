import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { repoRoot } from '../dev-config';

/** A block that a reader pastes into a shell: a fenced block of language `sh` in a README or guide. */
export interface Block {
  page: string;
  line: number;
  text: string;
  /**
   * The text after `needs:` in a comment above the block, such as `<!-- needs: docker -->`. It names something that no
   * test has, so the block is only parsed.
   */
  needs: string | undefined;
  /**
   * The command after `beside:` in a comment above the block, such as `<!-- beside: npm run dev keys -->`. The command
   * runs while the block runs.
   */
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

/** Lists the paths of all READMEs and guides. */
export function listPages(): string[] {
  const patterns = ['README.md', '*/README.md', 'docs/guides/*.md'];
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: repoRoot,
    encoding: 'utf8',
  });
  return output.split('\n').filter(Boolean);
}

/**
 * Lists all blocks of all READMEs and guides, except those that begin with `npm start` or `npm test`. Drydock already
 * runs when the blocks are run.
 */
export const listBlocks = (): Block[] =>
  listPages()
    .flatMap(readBlocks)
    .filter(({ text }) => !/^npm (start|test)\b/.test(text));

const otherFence = /^```(?!sh\n)(\S*)\n([\s\S]*?)^```$/gm;
const aCommand = /^(?:\$ |(?:npm|npx|node|curl|git|drydock|docker|kubectl|helm) \S)/m;

/**
 * Looks at the blocks of a page whose language is not `sh`, and returns the first command in each. No test runs these
 * commands.
 */
export function hiddenCommands(page: string): string[] {
  const text = fs.readFileSync(path.join(repoRoot, page), 'utf8').replace(/^```sh\n[\s\S]*?^```$/gm, '');
  return [...text.matchAll(otherFence)].flatMap(([, , block = '']) => {
    const line = aCommand.exec(block)?.[0];
    return line === undefined ? [] : [`${page}: ${line}`];
  });
}

/** Runs a block as if it was pasted into a shell: a line that fails does not end the block. */
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

export function isParsable({ text }: Block): boolean {
  return spawnSync('bash', ['-n'], { input: text }).status === 0;
}

/**
 * Returns what would be wrong for a reader of the block. A refusal of the API is not wrong if the block names its code.
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
 * Runs the examples in the README of the client, one after the other, against a demo. Rejects if an example fails or
 * its output is missing.
 */
export async function runClientExamples({ base_url, live_key }: { base_url: string; live_key: string }): Promise<void> {
  const readme = fs.readFileSync(path.join(repoRoot, 'packages/client/README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
  const env = { PATH: process.env['PATH'], DRYDOCK_URL: base_url, DRYDOCK_KEY: live_key };
  // The examples run in the folder of this file, because there Node finds the client by its name.
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
