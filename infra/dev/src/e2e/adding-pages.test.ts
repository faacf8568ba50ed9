/**
 * Writes the examples of docs/adding-an-endpoint.md and docs/adding-a-workflow.md, unchanged, into a copy of the tree,
 * and expects that they work.
 *
 * @tier long
 * @processes
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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

/** Returns the listings of a page. The first line of a listing names its file and, after a comma, the place in it. */
const listingsOf = (page: string): Listing[] =>
  [
    ...fs.readFileSync(inRepo(page), 'utf8').matchAll(/^ {3}```ts\n {3}\/\/ (\S+?)(?:, (.+))?\n([\s\S]*?)^ {3}```$/gm),
  ].map(([, file = '', place = '', code = '']) => ({ file, place, code: code.replace(/^ {3}/gm, '') }));

const mounted = 'among its imports and in its list';

function apply(tree: string, { file, place, code }: Listing): void {
  const target = path.join(tree, file);
  fs.writeFileSync(target, place === '' ? code : put(code, place, fs.readFileSync(target, 'utf8')));
}

function put(code: string, place: string, before: string): string {
  if (place === 'at its end') return `${before}\n${code}`;
  if (place === mounted) {
    const [imports = '', entry = ''] = code.split(/(?<=;\n)/);
    return `${imports}${before.replace(/= \[\n|=> \[\n/, (list) => `${list}${entry}`)}`;
  }
  const [, text = ''] = /^behind (.+)$/.exec(place) ?? assert.fail(`nobody knows where "${place}" is`);
  const lines = before.split(/(?<=\n)/);
  const at = lines.findIndex((line) => line.includes(text));
  assert.ok(at >= 0, `there is no line with ${text}`);
  return lines.toSpliced(at + 1, 0, code).join('');
}

const limitMs = 600_000;
jest.setTimeout(3 * limitMs);

/** Runs `npm run dev` for a service in a copy of the tree. */
function develop(service: string) {
  const tree = copyTree(repoRoot);
  const env = {
    ...process.env,
    DRYDOCK_DATA_DIR: path.join(tree, '.data'),
    NODE_ENV: 'development',
    DRYDOCK_TESTS: undefined,
  };
  const runIn = (folder: string, words: string[]) =>
    spawnSync(process.execPath, words, { cwd: path.join(tree, folder), env, encoding: 'utf8' });
  const run = (...words: string[]) => runIn('.', words);
  const developed = spawn(process.execPath, ['infra/dev/dist/dev-service.js', service], {
    cwd: tree,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  developed.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const call = (...words: string[]) => run('infra/dev/dist/dev-call.js', ...words);
  const answers = (status: number, words: readonly string[], text = ''): Promise<string> =>
    until(
      () => {
        const { stderr, stdout } = call(...words);
        return stderr.includes(`${status} from ${service}`) && stdout.includes(text) && stdout;
      },
      {
        timeoutMs: limitMs,
        everyMs: 500,
        what: `${status} ${text} of ${words.join(' ')}, where was said: ${said.slice(-3_000)}`,
      },
    );
  return {
    answers,
    add: (...listings: (Listing | undefined)[]) => {
      for (const listing of listings) if (listing !== undefined) apply(tree, listing);
    },
    expectTests: (...words: string[]) => {
      const { status, stderr } = run('node_modules/jest/bin/jest.js', ...words);
      expect([status, stderr]).toEqual([0, expect.stringMatching(/Tests: .*passed/)]);
    },
    /**
     * Expects that the files of the listings are formatted. A file whose imports a listing extends does not count,
     * because a reader's editor sorts the imports.
     */
    expectFormat: (...listings: (Listing | undefined)[]) => {
      const files = listings.flatMap((listing) =>
        listing === undefined || listing.place === mounted ? [] : listing.file,
      );
      const { status, stdout, stderr } = run('node_modules/@biomejs/biome/bin/biome', 'ci', ...files);
      expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
    },
    /**
     * Builds `drydock` from the changed contract, as `npm run openapi` and `npm run build` do. Expects that `drydock`
     * has the command `words`.
     */
    expectCommand: (words: string) => {
      const toRun = [
        ['.', 'node_modules/typescript/bin/tsc', '-b', 'services/gateway'],
        ['.', 'services/gateway/dist/write-openapi.js'],
        ['packages/client', 'generate.mjs'],
        ['packages/cli', 'generate.mjs'],
        ['packages/cli', '../../node_modules/typescript/bin/tsc', '-b'],
        ['packages/cli', 'bundle.mjs'],
      ];
      for (const [folder = '.', ...program] of toRun) {
        const { status, stdout, stderr } = runIn(folder, program);
        expect([program, status, status === 0 ? '' : stdout + stderr]).toEqual([program, 0, '']);
      }
      expect(run('packages/cli/dist/drydock.js', ...words.split(' '), '--help').stdout).toContain(`drydock ${words}`);
    },
    stop: async () => {
      const ended = once(developed, 'close');
      developed.kill('SIGTERM');
      await ended;
    },
  };
}

test('an endpoint: 501 before it is mounted and 200 after it, and its tests pass', async () => {
  const { answers, add, expectTests, expectFormat, expectCommand, stop } = develop('agency');
  const [contract, query, handler, mount, itsTest, ...shown] = listingsOf('docs/adding-an-endpoint.md');
  expect([itsTest?.file, shown.length]).toEqual(['services/agency/src/boards/count-cards.test.ts', 3]);
  try {
    const board = JSON.parse(await answers(201, ['POST', '/v1/agency/boards', '{"name":"Relaunch"}'])) as {
      id: string;
    };
    const target = `/v1/agency/boards/${board.id}/card-count`;
    add(contract);
    await answers(501, ['GET', target], 'agency does not mount countBoardCards yet');
    add(query, handler, mount);
    expect(JSON.parse(await answers(200, ['GET', target]))).toEqual({ cards: 0 });
  } finally {
    await stop();
  }
  add(itsTest, ...shown);
  expectFormat(contract, query, handler, mount, itsTest, ...shown);
  expectTests('services/agency/src/boards/count-cards.test.ts');
  expectTests('services/agency/src/conformance.test.ts', '-t', 'countBoardCards:');
  expectCommand('boards count');
});

test('a workflow: its request is taken, its worker does it, and its test passes', async () => {
  const { answers, add, expectTests, expectFormat, stop } = develop('hosting');
  const [contract, workflow, list, request, mount, itsTest, crashes, ...others] =
    listingsOf('docs/adding-a-workflow.md');
  expect([itsTest?.file, crashes?.file, others]).toEqual([
    'services/hosting/src/app/check-site.test.ts',
    'services/hosting/src/app/check-site-crash.test.ts',
    [],
  ]);
  try {
    const body = '{"name":"Shop","primary_domain":"shop.example.com"}';
    const made = JSON.parse(await answers(202, ['POST', '/v1/sites', body])) as { id: string; workflow_id: string };
    await answers(200, ['GET', `/v1/sites/${made.id}/workflows/${made.workflow_id}`], '"status": "succeeded"');
    const check = ['POST', `/v1/sites/${made.id}/check`];
    add(contract);
    await answers(501, check);
    add(workflow, list, request, mount);
    const { workflow_id: id } = JSON.parse(await answers(202, check)) as { workflow_id: string };
    await answers(200, ['GET', `/v1/sites/${made.id}/workflows/${id}`], '"status": "succeeded"');
  } finally {
    await stop();
  }
  add(itsTest, crashes);
  expectTests('services/hosting/src/app/check-site.test.ts');
  expectTests('services/hosting/src/app/check-site-crash.test.ts');
  expectFormat(contract, workflow, list, request, mount, itsTest, crashes);
});
