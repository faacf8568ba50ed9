/**
 * The worked example of docs/adding-an-endpoint.md, as it stands there, in a copy of the tree.
 *
 * @tier long
 * @processes
 */
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { inRepo, repoRoot } from '../dev-config';
import { copyTree } from '../mutants/copy';

interface Listing {
  file: string;
  place: string;
  code: string;
}

/** The code of a page: its first line says which file it is, or where in one it goes. */
const listingsOf = (page: string): Listing[] =>
  [...fs.readFileSync(inRepo(page), 'utf8').matchAll(/^ {3}```ts\n {3}\/\/ (\S+?)(?:, (.+))?\n([\s\S]*?)^ {3}```$/gm)].map(
    ([, file = '', place = '', code = '']) => ({ file, place, code: code.replace(/^ {3}/gm, '') }),
  );

function apply(tree: string, { file, place, code }: Listing): void {
  const target = path.join(tree, file);
  const before = place === '' ? '' : fs.readFileSync(target, 'utf8');
  const [imports = '', entry = ''] = code.split(/(?<=;\n)/);
  const isMounted = place === 'among its imports and in its list';
  const after = isMounted ? `${imports}${before.replace(/=> \[\n/, (list) => `${list}${entry}`)}` : `${before}\n${code}`;
  fs.writeFileSync(target, after);
}

const page = 'docs/adding-an-endpoint.md';
const limitMs = 600_000;
jest.setTimeout(3 * limitMs);

test('whoever follows the example is told 501 before the endpoint is mounted and 200 after it, and its tests pass', async () => {
  const tree = copyTree(repoRoot);
  const env = { ...process.env, DRYDOCK_DATA_DIR: path.join(tree, '.data'), NODE_ENV: 'development', DRYDOCK_TESTS: 'quick' };
  const developed = spawn(process.execPath, ['infra/dev/dist/dev-service.js', 'agency'], {
    cwd: tree,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  developed.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const call = (...words: string[]) =>
    spawnSync(process.execPath, ['infra/dev/dist/dev-call.js', ...words], { cwd: tree, env, encoding: 'utf8' });
  const isTold = (status: number, what: string) =>
    until(() => call('GET', target).stderr.includes(`${status} from agency`), {
      timeoutMs: limitMs,
      everyMs: 500,
      what: `${what}: ${said}`,
    });
  const [contract, query, handler, mount, itsTest] = listingsOf(page) as [Listing, Listing, Listing, Listing, Listing];
  let target = '/healthz';
  try {
    await isTold(200, 'a start');
    const board = JSON.parse(call('POST', '/v1/agency/boards', '{"name":"Relaunch"}').stdout) as { id: string };
    target = `/v1/agency/boards/${board.id}/card-count`;
    apply(tree, contract);
    await isTold(501, 'the contract alone');
    expect(call('GET', target).stdout).toContain('agency does not mount countBoardCards yet');
    for (const listing of [query, handler, mount]) apply(tree, listing);
    await isTold(200, 'the mounted endpoint');
    expect(JSON.parse(call('GET', target).stdout)).toEqual({ cards: 0 });
    apply(tree, itsTest);
  } finally {
    developed.kill('SIGTERM');
    await new Promise((resolve) => developed.once('close', resolve));
  }
  for (const words of [
    ['services/agency/src/boards/count-cards.test.ts'],
    ['services/agency/src/conformance.test.ts', '-t', 'countBoardCards:'],
  ]) {
    const ran = spawnSync(process.execPath, ['node_modules/jest/bin/jest.js', ...words], { cwd: tree, env, encoding: 'utf8' });
    expect([ran.status, ran.stderr]).toEqual([0, expect.stringMatching(/Tests: .*passed/)]);
  }
});
