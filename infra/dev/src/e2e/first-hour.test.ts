/**
 * Runs every block of every README and guide twice, except blocks that need something that tests lack, such as Docker.
 * The suite starts as a new user does: with npm, in a folder like the clone, and without earlier data or settings.
 *
 * @tier long
 * @processes
 */
import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isSameProcess, type ProcessProof, proveProcess } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import { repoRoot } from '../dev-config';
import { type Block, complaintsOf, hiddenCommands, isParsable, listBlocks, listPages, runBlock } from './readme-blocks';

jest.setTimeout(1_500_000);

const blocks = listBlocks();
/**
 * Returns the group of a page. The pages of a group run one after the other, because their blocks change the same
 * sites, databases or processes. The groups run at the same time.
 */
const groupOf = ({ page }: Block): string => (/^README|^docs\/guides\//.test(page) ? 'guides' : page);

let folder: string;
let environment: NodeJS.ProcessEnv;

beforeAll(() => {
  // The folder has links to everything in the clone except `.git` and `.data`. It gets its own `.data`.
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-first-hour-'));
  fs.chmodSync(folder, 0o711);
  for (const name of fs.readdirSync(repoRoot)) {
    if (name !== '.data' && name !== '.git') fs.symlinkSync(path.join(repoRoot, name), path.join(folder, name));
  }
  const { PATH, HOME, LANG } = process.env;
  const dataDir = path.join(folder, '.data');
  const forTests = {
    DRYDOCK_PORT: '0',
    DRYDOCK_DATA_DIR: dataDir,
    DRYDOCK_EPHEMERAL: '1',
    DRYDOCK_RATE_LIMIT_SCALE: '1000',
    CI: '1',
  };
  environment = { PATH, HOME, LANG, ...forTests };
});
afterAll(async () => {
  for (const npm of started) npm.process.kill('SIGTERM');
  await Promise.all(started.map(({ ended }) => ended));
  fs.rmSync(folder, { recursive: true, force: true });
});

interface Npm {
  process: ChildProcess;
  output(): string;
  ended: Promise<unknown>;
}

/** All programs that were started. They are ended after the tests, even if a test fails. */
const started: Npm[] = [];

async function runNpm(args: readonly string[], readyText: string): Promise<Npm> {
  const child = spawn('npm', args, { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = new Promise((resolve) => child.once('close', resolve));
  const npm: Npm = { process: child, output: () => output, ended };
  started.push(npm);
  await until(() => output.includes(readyText) || child.exitCode !== null, {
    timeoutMs: 400_000,
    what: `npm ${args.join(' ')}`,
  });
  if (!output.includes(readyText)) throw new Error(output);
  return npm;
}

function provenProcesses(): ProcessProof[] {
  const table = JSON.parse(fs.readFileSync(path.join(folder, '.data/processes.json'), 'utf8')) as Record<
    string,
    { pid: number }
  >;
  return Object.values(table).flatMap(({ pid }) => proveProcess(pid) ?? []);
}

/** Returns the pids of this test's processes, which have the data folder in their arguments or environment. */
function leftovers(): string[] {
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.filter((pid) => {
    try {
      const files = ['cmdline', 'environ'].map((name) => fs.readFileSync(`/proc/${pid}/${name}`, 'utf8'));
      return files.some((text) => text.includes(path.join(folder, '.data')));
    } catch {
      return false; // the process has ended, or belongs to another user
    }
  });
}

async function expectWholeEnd(npm: Npm, signal: NodeJS.Signals): Promise<void> {
  const proofs = provenProcesses();
  expect(proofs.length).toBeGreaterThan(10);
  npm.process.kill(signal);
  await npm.ended;
  expect(proofs.filter((proof) => isSameProcess(proof))).toEqual([]);
  await until(() => leftovers().length === 0, { what: `the end of ${leftovers().join(', ')}` });
}

describe('npm start', () => {
  let npm: Npm;
  const said = new Map<string, string[]>();

  beforeAll(async () => {
    npm = await runNpm(['start'], 'Ctrl-C stops everything.');
    const beside = [...new Set(blocks.flatMap((block) => block.beside ?? []))];
    const others = await Promise.all(beside.map((command) => runNpm(command.split(' ').slice(1), 'listens on')));
    const runnable = blocks.filter(({ needs }) => needs === undefined);
    const groups = [...new Set(runnable.map(groupOf))];
    await Promise.all(
      groups.map(async (group) => {
        // A block may write into the home folder, for example a link to `drydock`. So each group has a home of its own.
        const home = fs.mkdtempSync(path.join(folder, 'home-'));
        const reader = { ...environment, HOME: home, PATH: `${home}/.local/bin:${environment['PATH']}` };
        for (const block of runnable.filter((one) => groupOf(one) === group)) {
          for (const time of ['first', 'second']) {
            const complaints = complaintsOf(block, await runBlock(block, folder, reader));
            said.set(`${block.page}:${block.line} ${time}`, complaints);
          }
        }
      }),
    );
    for (const other of others) other.process.kill('SIGTERM');
    await Promise.all(others.map(({ ended }) => ended));
  });

  test('says where its documentation is', async () => {
    const address = /http:\/\/\S+\/docs/.exec(npm.output())?.[0];
    expect((await fetch(address ?? '')).status).toBe(200);
  });

  test.each(blocks.filter(({ needs }) => needs === undefined).map((block) => `${block.page}:${block.line}`))(
    'the block at %s does what it says as it is pasted, and again when it is pasted twice',
    (at) => {
      expect([said.get(`${at} first`), said.get(`${at} second`)]).toEqual([[], []]);
    },
  );

  test('every command of a page stands in a block that is run, but for these, which can at least be parsed', () => {
    expect(blocks.flatMap(({ page, needs }) => (needs === undefined ? [] : [`${page}: ${needs}`]))).toEqual([
      'docs/guides/debugging.md: a debugger',
      'docs/guides/deploying.md: docker',
      'docs/guides/deploying.md: docker',
      'docs/guides/deploying.md: kubernetes',
      'docs/guides/deploying.md: kubernetes',
      'docs/guides/ssh-sites.md: a host over ssh',
      'docs/guides/upgrading.md: docker',
      'docs/guides/upgrading.md: kubernetes',
    ]);
    expect(blocks.filter((block) => !isParsable(block))).toEqual([]);
    expect(listPages().flatMap(hiddenCommands)).toEqual([]);
  });

  test('ends wholly at a SIGINT to npm, and at a SIGTERM; nothing is left but its data', async () => {
    await expectWholeEnd(npm, 'SIGINT');
    await expectWholeEnd(await runNpm(['start'], 'Ctrl-C stops everything.'), 'SIGTERM');
  });
});
