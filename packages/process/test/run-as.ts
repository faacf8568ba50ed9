import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * The kinds of isolation to test. Root tests both, and tests `user_namespaces` in a process of the account `nobody`.
 */
export const kinds =
  process.getuid?.() === 0 ? (['accounts', 'user_namespaces'] as const) : (['user_namespaces'] as const);
export type Kind = (typeof kinds)[number];

const nobody = 65_534;

/** A copy of the compiled package that every account can read, even if no other account can enter the clone. */
export const compiled = mkdtempSync(path.join(os.tmpdir(), 'drydock-process-'));
cpSync(path.join(__dirname, '../dist'), path.join(compiled, 'dist'), { recursive: true });
chmodSync(compiled, 0o755);

export const removeCompiled = (): void => rmSync(compiled, { recursive: true, force: true });

/** The user id under which the scripts of a kind run. */
export const ownerOf = (kind: Kind): number =>
  kind === 'accounts' || process.getuid?.() !== 0 ? (process.getuid?.() ?? 0) : nobody;
/** The user id of the box's processes, and of the files that these processes create. */
export const accountIn = (kind: Kind): number => (kind === 'accounts' ? 200_001 : ownerOf(kind));

const prelude = `
const { spawnInBox } = require(${JSON.stringify(path.join(compiled, 'dist/box.js'))});
const box = (options) => spawnInBox({
  isolation: { kind: process.getuid() === 0 ? 'accounts' : 'user_namespaces' }, account: process.getuid() === 0 ? 200001 : null,
  env: {}, mounts: [], workdir: '/', stdio: ['ignore', 'pipe', 'inherit'], onOrphan: 'SIGKILL', ...options });
const inBox = async (source, options = {}) => {
  const child = await box({ command: [process.execPath, '-e', source], ...options });
  let text = '';
  child.process.stdout.on('data', (part) => { text += part; });
  await new Promise((resolve) => child.process.once('close', resolve));
  return { text, exit: await child.exited };
};
`;

/**
 * Starts a script under the account `ownerOf(kind)`. The script can call `box(options)` and `inBox(source, options)`.
 * `inherited` has further descriptors for the script, by their number in the script.
 */
export function startAs(
  kind: Kind,
  script: string,
  env: Record<string, string> = {},
  inherited: Readonly<Record<number, number>> = {},
): ChildProcess {
  const command = [
    process.execPath,
    '-e',
    `${prelude}(async () => { ${script} })().catch((error) => { console.error(error); process.exit(1); })`,
  ];
  const asOther =
    ownerOf(kind) === process.getuid?.()
      ? []
      : ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--'];
  const [program = '', ...args] = [...asOther, ...command];
  const last = Math.max(2, ...Object.keys(inherited).map(Number));
  const more = Array.from({ length: last - 2 }, (_, n) => inherited[n + 3] ?? ('ignore' as const));
  return spawn(program, args, {
    stdio: ['ignore', 'pipe', 'inherit', ...more],
    env: { PATH: process.env['PATH'], ...env },
  });
}

/** Runs a script like {@link startAs}, and returns its output, parsed as JSON. */
export async function runAs(...[kind, script, env, inherited]: Parameters<typeof startAs>): Promise<unknown> {
  const child = startAs(kind, script, env, inherited);
  let text = '';
  child.stdout?.on('data', (part: Buffer) => {
    text += part.toString();
  });
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new Error(`the script ended with ${String(code)}: ${text}`);
  return JSON.parse(text);
}
