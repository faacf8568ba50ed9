/**
 * @processes
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {
  accepted,
  Bench,
  closeWindow,
  key,
  onTerminal,
  problem,
  program,
  workflow,
  workflowPath,
} from './testing/bench';

/**
 * These tests compare output with golden files: output on a terminal of 100 columns, and output to a pipe. `npx jest
 * packages/cli -u` updates the files.
 */
const bench = new Bench();
beforeAll(() => bench.start());
afterAll(() => bench.stop());
beforeEach(() => {
  bench.answers = {};
  bench.seen = [];
});

/** Replaces addresses, which differ from run to run, and shows control characters as text. */
const shown = (text: string): string =>
  text
    .replaceAll(bench.url, 'http://drydock.test')
    .replaceAll(bench.home, '~')
    .replaceAll('\r\n', '\n')
    .replaceAll('\r', '<CR>')
    .replaceAll('\u001b', '<ESC>');

const restore = ['sites', 'restore', 'site-1', '--backup', 'backup-1'];
const site = {
  id: 'site-1',
  name: 'Harbour Shop',
  primary_domain: 'shop.test',
  platform: 'local',
  status: 'active',
  created_at: '2026-01-01T00:00:00.000Z',
};
const sites = {
  data: [site, { ...site, id: 'site-2', name: 'Blog', primary_domain: 'a-long-name.shop.test' }],
  page: { next_cursor: null },
};
const preflight = {
  would: 'Overwrite the files and the database of shop.test',
  resource: '/v1/sites/site-1',
  point: { id: 'backup-1', taken_at: '2026-01-01T00:00:00.000Z', age_seconds: 60 },
  space: { needed_bytes: 67_100_000, free_bytes: 9_000_000_000 },
  refusal: null,
  findings: [{ level: 'WARNING', code: 'paths_skipped', detail: '2 paths are not in the backup.' }],
  undo: false,
};
const restoring = (...states: unknown[]) => ({
  'GET /v1/sites/site-1': [{ body: site }],
  'POST /v1/sites/site-1/backups/restore/preflight': [{ body: preflight }],
  'POST /v1/sites/site-1/backups/restore': [accepted],
  [`GET ${workflowPath}`]: states.map((body) => ({ body })),
});

describe('over a pipe', () => {
  it.each([
    [['--help']],
    [['sites', '--help']],
    [['sites', 'create', '--help']],
    [['sites', 'restore', '--help']],
    [['workflows', 'watch', 'site', '--help']],
  ])('help of %j', async (words) => expect(shown((await bench.run(words)).stdout)).toMatchSnapshot());

  it('a table, a record, JSON, and an error', async () => {
    bench.answers = {
      'GET /v1/sites': [{ body: sites }],
      'GET /v1/sites/site-1': [{ body: { ...site, plan: { daily_backups: true, tags: [], notes: null } } }],
      'GET /v1/sites/gone': [{ status: 404, body: problem(404, 'site_not_found') }],
    };
    for (const words of [['list'], ['get', 'site-1'], ['get', 'site-1', '-o', 'json'], ['get', 'gone'], ['gte']])
      expect(
        await bench.run(['sites', ...words]).then(({ code, stdout, stderr }) => [code, shown(stdout), shown(stderr)]),
      ).toMatchSnapshot();
  });

  it('long work has no progress there', async () => {
    bench.answers = restoring(workflow('running', 40), workflow('succeeded', 100));
    expect(await bench.run([...restore, '--yes', '--wait'])).toMatchSnapshot();
  });
});

describe('on a terminal', () => {
  it('a table is the one of a pipe', async () => {
    bench.answers = { 'GET /v1/sites': [{ body: sites }] };
    const [piped, seen] = [await bench.run(['sites', 'list']), await bench.runOnTerminal(['sites', 'list'])];
    expect(shown(seen.stdout)).toBe(shown(piped.stdout));
  });

  it('help is as wide as the terminal, and an error is the one of a pipe', async () => {
    bench.answers = { 'GET /v1/sites/gone': [{ status: 404, body: problem(404, 'site_not_found') }] };
    const [help, error] = [
      await bench.runOnTerminal(['sites', 'restore', '--help']),
      await bench.runOnTerminal(['sites', 'get', 'gone']),
    ];
    expect([help.code, shown(help.stdout), error.code, shown(error.stdout)]).toMatchSnapshot();
  });

  it('a restore shows what it would do, asks for the name, shows its progress and its end', async () => {
    bench.answers = restoring(workflow('running', 10), workflow('running', 40), workflow('succeeded', 100));
    const { code, stdout } = await bench.runOnTerminal(restore, [['to go on: ', 'shop.test\r']]);
    expect([code, shown(stdout)]).toMatchSnapshot();
  });

  it.each([
    ['another name', 'blog.test\r', 2],
    ['nothing', '\r', 2],
    ['the end of input', '\u0004', 2],
    ['Ctrl-C', '\u0003', 130],
  ])('a restore that is answered with %s sends nothing', async (_what, typed, code) => {
    bench.answers = restoring(workflow('running', 10));
    expect(await bench.runOnTerminal(restore, [['to go on: ', typed]])).toMatchObject({ code });
    expect(bench.seen.map(({ call }) => call)).toEqual([
      'GET /v1/sites/site-1',
      'POST /v1/sites/site-1/backups/restore/preflight',
    ]);
  });

  it('a site whose name cannot be seen is not confirmed by an empty line', async () => {
    bench.answers = {
      ...restoring(workflow('running', 10)),
      'GET /v1/sites/site-1': [{ body: { id: 'site-1', primary_domain: '\u202e\u001b[2K' } }],
    };
    expect(await bench.runOnTerminal(restore, [['Type site-1 to go on: ', '\r']])).toMatchObject({ code: 2 });
  });

  it('a restore that would be refused says so and does not ask', async () => {
    bench.answers = {
      ...restoring(),
      'POST /v1/sites/site-1/backups/restore/preflight': [
        { body: { ...preflight, refusal: problem(409, 'operation_in_progress') } },
      ],
    };
    const { code, stdout } = await bench.runOnTerminal(restore);
    expect(code).toBe(5);
    expect(shown(stdout)).toContain('  Refused   A title. Do this. (operation_in_progress)\n');
    expect(stdout).not.toContain('to go on');
  });

  it('Ctrl-C while work is waited for ends the command, prints its document, and says how to follow the work', async () => {
    bench.answers = restoring(workflow('running', 10));
    const { code, stdout } = await bench.runOnTerminal([...restore, '--yes'], [['10 %', '\u0003']]);
    expect([code, shown(stdout)]).toMatchSnapshot();
  });

  it('the key of a context is not shown while it is typed', async () => {
    const { code, stdout } = await bench.runOnTerminal(
      ['contexts', 'add', 'demo', '--url', bench.url],
      [['Key for', `${key}\r`]],
    );
    expect([code, shown(stdout)]).toMatchSnapshot();
    expect(fs.readFileSync(path.join(bench.home, 'drydock/contexts.json'), 'utf8')).toContain(key);
  });
});

describe('doctor', () => {
  const document = fs.readFileSync(path.resolve(__dirname, '../../../docs/openapi.json'), 'utf8');
  const me = { key: { name: 'deploy', prefix: 'abc' }, org: { name: 'Harbour' }, mode: 'live', scopes: ['sites.view'] };
  const healthy = {
    'GET /healthz': [{ body: { status: 'ok' } }],
    'GET /readyz': [{ body: { status: 'ready', checks: { keys: 'ok' } } }],
    'GET /openapi.json': [{ text: document }],
    'GET /v1/me': [{ body: me }],
  };

  it.each([
    ['all is well', {}, 0],
    ['the key is not accepted', { 'GET /v1/me': [{ status: 401, body: problem(401, 'unauthenticated') }] }, 3],
    [
      'a service is away',
      { 'GET /readyz': [{ status: 503, body: { status: 'not_ready', checks: { keys: 'ok', hosting: 'timed_out' } } }] },
      8,
    ],
    ['the clock is wrong', { 'GET /healthz': [{ body: {}, headers: { date: 'Thu, 01 Jan 2026 00:00:00 GMT' } }] }, 0],
    [
      'the version is another',
      { 'GET /openapi.json': [{ body: { info: { version: '2' }, paths: { '/x': { get: { operationId: 'x' } } } } }] },
      0,
    ],
    ['something else answers', { 'GET /healthz': [{ status: 404, text: 'nginx' }] }, 8],
  ])('says so where %s', async (_what, answers, code) => {
    bench.answers = { ...healthy, ...answers };
    const outcome = await bench.run(['doctor']);
    expect(outcome.code).toBe(code);
    expect(
      shown(outcome.stdout)
        .replace(/\d+ s ahead/, 'N s ahead')
        .replace(/\d+ (operations|commands)/g, 'N $1'),
    ).toMatchSnapshot();
    // Only GET /v1/me gets the key.
    expect(
      bench.seen
        .filter(({ authorization }) => authorization !== undefined)
        .map(({ call }) => call)
        .filter((call) => call !== 'GET /v1/me'),
    ).toEqual([]);
  });

  it('needs no server to say that there is none', async () => {
    const { code, stdout } = await bench.run(['doctor'], {
      env: { DRYDOCK_URL: 'http://127.0.0.1:1', DRYDOCK_KEY: key },
    });
    expect(code).toBe(8);
    expect(stdout).toContain('reach          failed');
  });
});

describe('completion', () => {
  const folder = path.join(bench.home, 'bin');
  const environment = (): NodeJS.ProcessEnv => ({
    ...bench.environment(),
    PATH: `${folder}:${path.dirname(process.execPath)}:${process.env['PATH']}`,
  });
  beforeAll(() => {
    fs.mkdirSync(folder);
    fs.symlinkSync(program, path.join(folder, 'drydock'));
  });
  const hasShell = (shell: string): boolean => {
    try {
      execFileSync('sh', ['-c', `command -v ${shell}`]);
      return true;
    } catch {
      return false;
    }
  };
  /** Skips the test if its shell is not installed. The test's name then says how to install the shell. */
  const itWith = (shell: string, name: string, test: () => Promise<void>): void => {
    const isThere = hasShell(shell);
    (isThere ? it : it.skip)(isThere ? name : `${name}: apt-get install ${shell}`, test);
  };

  const bash = (...words: string[]): string[] => {
    const line = `source <(drydock completion bash); COMP_WORDS=(drydock ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _drydock; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', line], { env: environment(), encoding: 'utf8' }).split('\n').filter(Boolean);
  };

  itWith('bash', 'in bash has commands, options, their choices and the names of contexts', async () => {
    await bench.run(['contexts', 'add', 'demo', '--url', bench.url], { input: key });
    expect(bash('sites', 're')).toEqual(['restore']);
    expect(bash('')).toContain('databases');
    expect(bash('')).not.toContain('__complete');
    expect(bash('sites', 'create', '--platf')).toEqual(['--platform']);
    expect(bash('sites', 'create', '--platform', '')).toEqual(['local', 'ssh', 'vendor']);
    expect(bash('sites', 'list', '-o', 'j')).toEqual(['json']);
    expect(bash('--context', '')).toEqual(['demo']);
    expect(bash('contexts', 'use', 'd')).toEqual(['demo']);
    expect(bash('-o', 'json', 'keys', 'm')).toEqual(['mint']);
    expect(bash('$(touch pwned)', '')).not.toEqual([]);
    expect(fs.existsSync('pwned')).toBe(false);
  });

  itWith('bash', 'in bash completes a word at the press of Tab', async () => {
    const dialogue = [
      ['[?2004h', "source <(drydock completion bash); echo load''ed\r"],
      ['loaded', 'drydock sites rest\t'],
      ['restore', closeWindow],
    ] as const;
    const { stdout } = await onTerminal('exec bash --norc --noprofile -i', dialogue, environment());
    expect(stdout).toContain('drydock sites restore');
  });

  itWith('fish', 'in fish has the same, with descriptions', async () => {
    const fish = (line: string): string[] =>
      execFileSync('fish', ['--no-config', '-c', `drydock completion fish | source; complete -C '${line}'`], {
        env: environment(),
        encoding: 'utf8',
      }).split('\n');
    expect(fish('drydock sites rest')[0]).toMatch(/^restore\tOverwrite the site's live files/);
    expect(fish('drydock sites create --platform ')).toEqual(['local', 'ssh', 'vendor', '']);
  });

  itWith('zsh', 'in zsh completes a word at the press of Tab', async () => {
    const setUp = "autoload -U compinit; compinit -u -D; source <(drydock completion zsh); echo load''ed\r";
    const dialogue = [
      ['[?2004h', setUp],
      ['loaded', 'drydock sites rest\t'],
      ['restore', closeWindow],
    ] as const;
    const { stdout } = await onTerminal('exec zsh -f -i', dialogue, environment());
    expect(stdout).toContain('drydock sites restore');
  });
});
