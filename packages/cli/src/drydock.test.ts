import fs from 'node:fs';
import path from 'node:path';
import { Webhook } from 'standardwebhooks';
import { type CommandPlan, groups, operationIds, plans } from './commands';
import { operations } from './generated/contract';
import { buildProgram } from './program';
import { accepted, Bench, key, problem, workflow, workflowPath } from './testing/bench';

const bench = new Bench();
beforeAll(() => bench.start());
afterAll(() => bench.stop());
beforeEach(() => {
  bench.answers = {};
  bench.seen = [];
});

const site = (name: string) => ({
  id: `id-of-${name}`,
  name,
  primary_domain: `${name}.test`,
  platform: 'local',
  status: 'active',
  created_at: '2026-01-01',
});
const page = (items: unknown[], next: string | null = null) => ({
  body: { data: items, page: { next_cursor: next, has_more: next !== null, limit: 50 } },
});
const restore = ['sites', 'restore', 'site-1', '--backup', 'backup-1'];
const restoreCall = 'POST /v1/sites/site-1/backups/restore';

describe('the commands', () => {
  const contract = JSON.parse(fs.readFileSync(path.resolve(__dirname, '../../../docs/openapi.json'), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const ids = Object.values(contract.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  const program = buildProgram();
  const find = (words: string) =>
    words
      .split(' ')
      .reduce<typeof program | undefined>(
        (at, word) => at?.commands.find((command) => command.name() === word),
        program,
      );

  it('reach every operation of docs/openapi.json, each with its summary, its arguments and an option for every field', () => {
    expect(ids.length).toBeGreaterThan(90);
    expect(ids.toSorted()).toEqual([...operationIds].sort());
    const unreachable = operationIds.filter((id) => {
      const plan = plans[id];
      if ('dryRunOf' in plan)
        return !find((plans[plan.dryRunOf] as CommandPlan).command)?.options.some(({ long }) => long === '--dry-run');
      const command = find(plan.command);
      const fields = operations[id].fields.filter(({ place }) => place !== 'path').length;
      return (
        command === undefined ||
        (command.summary() !== operations[id].summary && !operations[id].isStream) ||
        command.options.filter(({ hidden }) => !hidden).length < fields
      );
    });
    expect(unreachable).toEqual([]);
    expect(new Set(Object.values(plans).flatMap((plan) => ('command' in plan ? [plan.command] : []))).size).toBe(
      Object.values(plans).filter((plan) => 'command' in plan).length,
    );
    for (const name of Object.keys(groups)) expect([name, find(name)?.description()]).toEqual([name, groups[name]]);
  });

  it('ask first wherever something is deleted, replaced, rotated or given up', () => {
    const isDestructive = (id: string): boolean =>
      /^(delete|restore|rollBack|rebuild|upgrade|abandon|rotate|revoke)/.test(id);
    const hasDryRun = Object.values(plans).flatMap((plan) => ('dryRunOf' in plan ? [plan.dryRunOf] : []));
    const silent = operationIds.filter((id) => {
      const plan = plans[id];
      const mustAsk = isDestructive(id) || operations[id].method === 'DELETE' || hasDryRun.includes(id);
      return mustAsk && 'command' in plan && plan.asks === undefined;
    });
    // These two operations destroy nothing: they start a server, and take a card out of the archive.
    expect(silent).toEqual(['powerOnComputeServer', 'restoreCard']);
  });

  it.each(operationIds.flatMap((id) => ('dryRunOf' in plans[id] ? [[id, plans[id].dryRunOf] as const] : [])))(
    'take a dry run with the arguments of the real one: %s is of %s',
    (twin, real) => {
      const namesOf = (id: typeof twin): string[] =>
        operations[id].fields.map(({ place, steps }) => `${place} ${steps.join('.')}`);
      expect(namesOf(twin)).toEqual(namesOf(real));
    },
  );
});

describe('a call', () => {
  it('has its fields from options, and those of --body under them', async () => {
    bench.answers = {
      'POST /v1/sites': [{ ...accepted, body: site('a') }],
      [`GET ${workflowPath}`]: [{ body: workflow('running', 1) }],
    };
    const words = [
      'sites',
      'create',
      '--name',
      'A',
      '--domain',
      'a.test',
      '--plan-backup-retention-days',
      '7',
      '--no-plan-daily-backups',
    ];
    expect(await bench.run([...words, '--idempotency-key', 'mine'])).toMatchObject({ code: 0 });
    expect(bench.seen[0]).toMatchObject({
      call: 'POST /v1/sites',
      body: { name: 'A', primary_domain: 'a.test', plan: { backup_retention_days: 7, daily_backups: false } },
      authorization: `Bearer ${key}`,
      idempotencyKey: 'mine',
    });
    bench.seen = [];
    await bench.run(['sites', 'create', '--body', '-', '--name', 'B'], {
      input: JSON.stringify({ name: 'A', primary_domain: 'a.test' }),
    });
    expect(bench.seen[0]?.body).toEqual({ name: 'B', primary_domain: 'a.test' });
    bench.answers = { 'POST /v1/api-keys': [{ status: 201, body: { token: 'dd_test_new_token' } }] };
    bench.seen = [];
    const minted = await bench.run([
      'keys',
      'mint',
      '--name',
      'k',
      '--scope',
      'a',
      '--scope',
      'b',
      '--org',
      'null',
      '--sandbox',
    ]);
    expect(bench.seen[0]?.body).toEqual({ name: 'k', scopes: ['a', 'b'], org_id: null, sandbox: true });
    expect(minted.stdout).toContain('dd_test_new_token');
  });

  it('takes a secret from a file or stdin, and has no option for the secret itself', async () => {
    bench.answers = { 'PUT /v1/sites/site-1/offsite': [{ body: { configured: true } }] };
    const words = [
      'offsite',
      'set',
      'site-1',
      '--endpoint',
      'https://s3.test',
      '--region',
      'r',
      '--bucket',
      'b',
      '--access-key-id',
      'id',
    ];
    expect(await bench.run([...words, '--secret-access-key', 'x'])).toMatchObject({ code: 2 });
    expect(await bench.run([...words, '--secret-access-key-file', '-'], { input: 'hidden\n' })).toMatchObject({
      code: 0,
    });
    expect(bench.seen.map(({ body }) => body)).toMatchObject([{ secret_access_key: 'hidden' }]);
  });

  it('is printed as the API answers it with -o json and -o yaml, whatever is in it', async () => {
    const odd = { ...site('a'), name: 'a\u001b[2J\u202e\u009b \u{e0041}: - #"' };
    bench.answers = { 'GET /v1/sites/a': [{ body: odd }] };
    const json = await bench.run(['sites', 'get', 'a', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual(odd);
    const yaml = await bench.run(['-o', 'yaml', 'sites', 'get', 'a']);
    expect((await import('yaml')).parse(yaml.stdout)).toEqual(odd);
    for (const { stdout } of [json, yaml]) expect(stdout).not.toMatch(/[^\n\x20-\x7e]/);
  });

  it('reads one page and says so, or all of them with --all', async () => {
    bench.answers = {
      'GET /v1/sites?limit=1': [page([site('a')], 'next')],
      'GET /v1/sites?limit=1&cursor=next': [page([site('b')])],
    };
    const one = await bench.run(['sites', 'list', '--limit', '1']);
    expect(one.stdout.split('\n')).toHaveLength(3);
    expect(one.stderr).toBe('There are more: --all, or --cursor next\n');
    const all = await bench.run(['sites', 'list', '--limit', '1', '--all', '-o', 'json']);
    expect(JSON.parse(all.stdout)).toEqual({
      data: [site('a'), site('b')],
      page: { next_cursor: null, has_more: false, limit: 50 },
    });
  });

  it('shows nothing of a server that could drive the terminal', async () => {
    const name = 'x\u001b[2J\u001b]0;title\u0007\r\n\u202egnp\u009b31m\u2028y';
    bench.answers = {
      'GET /v1/sites': [page([site(name)])],
      'GET /v1/sites/a': [
        {
          status: 422,
          body: {
            ...problem(422, 'invalid_request'),
            detail: name,
            errors: [{ pointer: name, code: 'x', detail: name }],
          },
        },
      ],
    };
    const { stdout } = await bench.run(['sites', 'list']);
    const { stderr } = await bench.run(['sites', 'get', 'a']);
    expect(stdout).toContain('id-of-x gnpy ');
    for (const text of [stdout, stderr]) expect(text).not.toMatch(/[^\n\x20-\x7e]/);
  });
});

describe('the exit code', () => {
  const long = (...states: unknown[]) => ({
    [restoreCall]: [accepted],
    [`GET ${workflowPath}`]: states.map((body) => ({ body })),
  });
  const confirmed = [...restore, '--yes', '--wait'];

  it('is 0 for what is done, also for long work that was waited for', async () => {
    bench.answers = long(workflow('running', 40), workflow('succeeded', 100));
    const { code, stdout, stderr } = await bench.run([...confirmed, '-o', 'json']);
    expect([code, stderr]).toEqual([0, 'restore_site_backup succeeded\n']);
    expect(JSON.parse(stdout)).toMatchObject({ answer: { in_progress: true }, workflow: { status: 'succeeded' } });
  });

  it('is 0 for long work that goes on by itself, and says how to follow it', async () => {
    bench.answers = long(workflow('running', 40));
    for (const words of [
      [...restore, '--yes'],
      [...restore, '--yes', '--detach'],
    ]) {
      const { code, stdout, stderr } = await bench.run(words);
      expect([code, stderr]).toEqual([0, 'It goes on. To follow it: drydock workflows watch site site-1 workflow-1\n']);
      expect(stdout).toContain('workflow-1');
    }
  });

  it.each([
    [['sites', 'nonsense']],
    [['sites', 'list', '--limit', 'many']],
    [['sites', 'list', '-o', 'xml']],
    [['sites', 'restore', 'site-1', '--yes']],
    [['sites', 'restore']],
    [['sites', 'create', '--body', '/does/not/exist']],
    [[...restore, '--yes', '--wait', '--detach']],
    [['sites', 'get', '..']],
  ])('is 2 for a call that cannot be meant: %j', async (words) => {
    const { code, stdout, stderr } = await bench.run(words);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).not.toBe('');
    expect(bench.seen).toEqual([]);
  });

  it('is 2 for a destructive command without --yes where nobody can be asked; nothing is sent', async () => {
    for (const words of [
      restore,
      ['sites', 'delete', 's'],
      ['keys', 'rotate', 'k'],
      ['workflows', 'abandon', 'site', 's', 'w'],
    ])
      expect(await bench.run(words)).toMatchObject({ code: 2, stderr: expect.stringContaining('Give --yes') });
    expect(bench.seen).toEqual([]);
  });

  it.each([
    [401, 'unauthenticated', 3],
    [403, 'permission_denied', 3],
    [404, 'site_not_found', 4],
    [409, 'operation_in_progress', 5],
    [422, 'invalid_request', 5],
    [500, 'internal_error', 8],
  ])('of an answer %i %s is %i', async (status, code, expected) => {
    bench.answers = { 'GET /v1/sites/s': [{ status, body: problem(status, code) }] };
    const outcome = await bench.run(['sites', 'get', 's']);
    expect([outcome.code, outcome.stdout]).toEqual([expected, '']);
    expect(outcome.stderr).toContain(`drydock: A title. Do this. (${code}, request request-1)\n`);
  });

  it('is 5 for a dry run that would be refused', async () => {
    const preflight = {
      would: 'Overwrite it',
      resource: '/v1/sites/site-1',
      point: null,
      space: null,
      refusal: problem(409, 'operation_in_progress'),
      findings: [],
      undo: false,
    };
    bench.answers = { [`${restoreCall}/preflight`]: [{ body: preflight }, { body: { ...preflight, refusal: null } }] };
    expect(await bench.run([...restore, '--dry-run'])).toMatchObject({
      code: 5,
      stdout: expect.stringContaining('Refused'),
    });
    expect(await bench.run([...restore, '--dry-run'])).toMatchObject({ code: 0 });
  });

  it('is 6 for long work that takes longer than --timeout; the document is printed all the same', async () => {
    bench.answers = long(workflow('running', 40));
    const { code, stdout, stderr } = await bench.run([...restore, '--yes', '--timeout', '1s', '-o', 'json']);
    expect(code).toBe(6);
    expect(JSON.parse(stdout)).toMatchObject({ workflow: { status: 'running' } });
    expect(stderr).toContain('drydock workflows watch site site-1 workflow-1');
  });

  it.each([
    [403, 'permission_denied'],
    [404, 'workflow_not_found'],
    [429, 'rate_limited'],
    [500, 'internal_error'],
  ])(
    'of accepted work whose state is answered %i %s is 0 where nothing waits for it, and 9 where it is waited for',
    async (status, problemCode) => {
      const refused = { status, body: problem(status, problemCode), headers: { 'retry-after': '600' } };
      for (const [words, expected] of [
        [[...restore, '--yes'], 0],
        [[...restore, '--yes', '--detach'], 0],
        [confirmed, 9],
        [[...restore, '--yes', '--timeout', '10m'], 9],
      ] as const) {
        bench.answers = { [restoreCall]: [accepted], [`GET ${workflowPath}`]: [refused] };
        const { code, stdout, stderr } = await bench.run([...words, '-o', 'json']);
        expect([code, JSON.parse(stdout)]).toMatchObject([expected, { answer: { in_progress: true }, workflow: null }]);
        expect(stderr).toContain('It goes on. To follow it: drydock workflows watch site site-1 workflow-1\n');
        expect(stderr.includes(problemCode)).toBe(expected === 9 || status < 500);
      }
    },
    60_000,
  );

  it.each(['failed', 'needs_attention'])(
    'is 7 for long work that is %s, with its code and what to do',
    async (status) => {
      bench.answers = long(workflow(status, 40, problem(422, 'backup_tampered')));
      const { code, stderr } = await bench.run(confirmed);
      expect(code).toBe(7);
      expect(stderr).toContain('drydock: A title. Do this. (backup_tampered, workflow workflow-1)\n');
    },
  );

  it('is 8 where no answer comes, and where something else answers', async () => {
    expect(
      await bench.run(['sites', 'list'], { env: { DRYDOCK_URL: 'http://127.0.0.1:1', DRYDOCK_KEY: key } }),
    ).toMatchObject({
      code: 8,
      stdout: '',
    });
    bench.answers = {
      'POST /v1/sites/s/domain/prove': [
        { status: 502, text: '<h1>\u001b[2J', headers: { 'content-type': 'text/html' } },
      ],
    };
    expect(await bench.run(['sites', 'domain', 'prove', 's'])).toMatchObject({
      code: 8,
      stderr: expect.not.stringContaining('\u001b'),
    });
  });
});

describe('workflows watch', () => {
  const event = (id: number, state: unknown): string =>
    `id: ${id}\nevent: workflow\ndata: ${JSON.stringify(state)}\n\n`;

  it.each([
    ['succeeded', 0],
    ['failed', 7],
  ])('prints each state; of one that %s it ends with %i', async (status, code) => {
    const stream =
      event(1, workflow('running', 40)) +
      event(2, workflow(status, 100, status === 'failed' ? problem(422, 'step_failed') : null));
    bench.answers = {
      [`GET ${workflowPath}/events`]: [
        { text: stream, headers: { 'content-type': 'text/event-stream' } },
        { status: 204 },
      ],
    };
    const outcome = await bench.run(['workflows', 'watch', 'site', 'site-1', 'workflow-1']);
    expect(outcome).toMatchObject({
      code,
      stdout: `running  restore_site_backup  40 %  stage\n${status}  restore_site_backup  100 %\n`,
    });
  });

  it('ends with 6 when it takes longer than --timeout', async () => {
    bench.answers = {
      [`GET ${workflowPath}/events`]: [
        { text: event(1, workflow('running', 40)), headers: { 'content-type': 'text/event-stream' } },
      ],
    };
    const words = ['workflows', 'watch', 'site', 'site-1', 'workflow-1', '--timeout', '1'];
    expect(await bench.run(words)).toMatchObject({ code: 6, stdout: expect.stringContaining('40 %') });
  });
});

describe('events', () => {
  const event = (id: string) => ({
    id,
    type: 'card.create',
    at: '2026-11-23T10:00:00.000Z',
    resource: `/v1/cards/${id}`,
    workflow: null,
  });
  const sent = (id: string) => `id: ${id}\nevent: card.create\ndata: ${JSON.stringify(event(id))}\n\n`;
  const stream = (text: string) => ({
    text: `id: start\nevent: ready\ndata: {}\n\n${text}`,
    headers: { 'content-type': 'text/event-stream' },
  });

  it('watch prints each as it comes, goes on where a stream broke, and ends well when its time is over', async () => {
    bench.answers = { 'GET /v1/events/stream?type=card.create': [stream(sent('a')), stream(sent('b')), stream('')] };
    const outcome = await bench.run(['events', 'watch', '--type', 'card.create', '--timeout', '3s']);
    const line = (id: string) => `2026-11-23T10:00:00.000Z  card.create  /v1/cards/${id}\n`;
    expect(outcome).toMatchObject({ code: 0, stdout: `${line('a')}${line('b')}` });
  });

  it('alone are the list, and with --follow the stream', async () => {
    bench.answers = {
      'GET /v1/events': [page([event('a')])],
      'GET /v1/events/stream?type=card.create': [stream(sent('b')), stream('')],
    };
    expect(await bench.run(['events'])).toMatchObject({ code: 0, stdout: expect.stringContaining('/v1/cards/a') });
    const followed = await bench.run(['events', '--follow', '--type', 'card.create', '--timeout', '3s']);
    expect(followed).toMatchObject({ code: 0, stdout: '2026-11-23T10:00:00.000Z  card.create  /v1/cards/b\n' });
    expect(await bench.run(['events', '--follow', '--limit', '1'])).toMatchObject({ code: 2 });
  });

  it('listen sends each to a receiver of one’s own, signed so that the library of the standard takes it', async () => {
    const secret = `whsec_${Buffer.from('s'.repeat(32)).toString('base64')}`;
    bench.answers = {
      'GET /v1/events/stream': [stream(sent('a') + sent('b')), stream('')],
      'POST /hook': [{ status: 204 }, { status: 500 }],
    };
    const words = ['listen', '--forward-to', `${bench.url}/hook`, '--secret', secret, '--timeout', '2s'];
    const { code, stdout } = await bench.run(words);
    expect([code, stdout]).toEqual([0, 'card.create  /v1/cards/a  204\ncard.create  /v1/cards/b  500\n']);
    const messages = bench.seen.filter(({ call }) => call === 'POST /hook');
    expect(messages.map(({ text, headers }) => new Webhook(secret).verify(text, headers))).toEqual(
      ['a', 'b'].map((id) => ({ type: 'card.create', timestamp: '2026-11-23T10:00:00.000Z', data: event(id) })),
    );
    expect(messages.every(({ authorization }) => authorization === undefined)).toBe(true);
    expect(await bench.run(['listen', '--forward-to', 'localhost:3000'])).toMatchObject({ code: 2 });
  });
});

describe('contexts', () => {
  const folder = path.join(bench.home, 'drydock');
  const file = path.join(folder, 'contexts.json');
  const mode = (name: string): number => fs.statSync(name).mode & 0o777;
  const contexts = (...words: string[]) => bench.run(['contexts', ...words], { input: `${key}\n`, env: {} });

  it('are kept for this user alone, by a key that never stands in a command line or an answer', async () => {
    expect(await contexts('add', 'demo', '--url', `${bench.url}/`)).toMatchObject({ code: 0 });
    expect(await contexts('add', 'other', '--url', 'https://other.test')).toMatchObject({ code: 0 });
    expect([mode(folder), mode(file), fs.readdirSync(folder)]).toEqual([0o700, 0o600, ['contexts.json']]);
    const { stdout } = await contexts('list');
    const cells = stdout.split('\n').map((line) => line.split(/ +/));
    expect(cells).toEqual([
      ['NAME', 'URL', 'CURRENT'],
      ['demo', bench.url, 'true'],
      ['other', 'https://other.test', 'false'],
      [''],
    ]);
    expect(await contexts('add', 'x', '--url', 'https://x.test', '--key', key)).toMatchObject({ code: 2 });
  });

  it('are called unless the environment names an installation, and only with the key that belongs to it', async () => {
    bench.answers = { 'GET /v1/sites': [page([])] };
    expect(await bench.run(['sites', 'list'], { env: {} })).toMatchObject({ code: 0 });
    expect(bench.seen.map(({ authorization }) => authorization)).toEqual([`Bearer ${key}`]);
    expect(await bench.run(['sites', 'list'], { env: { DRYDOCK_URL: 'https://elsewhere.test' } })).toMatchObject({
      code: 2,
    });
    expect(await bench.run(['sites', 'list'], { env: { DRYDOCK_KEY: 'dd_test_other' } })).toMatchObject({ code: 2 });
    await bench.run(['sites', 'list'], { env: { DRYDOCK_URL: bench.url, DRYDOCK_KEY: 'dd_test_other' } });
    expect(bench.seen.at(-1)?.authorization).toBe('Bearer dd_test_other');
    expect(
      await bench.run(['sites', 'list', '--context', 'demo'], {
        env: { DRYDOCK_URL: bench.url, DRYDOCK_KEY: 'dd_test_other' },
      }),
    ).toMatchObject({ code: 0 });
    expect(bench.seen.at(-1)?.authorization).toBe(`Bearer ${key}`);
  });

  it.each(['dd_test_a\nb', 'dd_test_\u20ac', 'password'])(
    'and the environment have no key that no request could carry, and do not show it: %j',
    async (wrong) => {
      const { code, stdout, stderr } = await bench.run(['whoami'], {
        env: { DRYDOCK_URL: bench.url, DRYDOCK_KEY: wrong },
      });
      expect([code, stdout, stderr.includes(wrong)]).toEqual([2, '', false]);
    },
  );

  it('are not used once others can read them', async () => {
    fs.chmodSync(file, 0o640);
    bench.seen = [];
    expect(await bench.run(['sites', 'list'], { env: {} })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`chmod 600 ${file}`),
    });
    fs.chmodSync(file, 0o600);
    fs.chmodSync(folder, 0o777);
    expect(await bench.run(['sites', 'list'], { env: {} })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('open to other users'),
    });
    fs.chmodSync(folder, 0o700);
    expect(bench.seen).toEqual([]);
  });

  it('are changed and forgotten by name', async () => {
    expect(await contexts('use', 'other')).toMatchObject({ code: 0 });
    expect(await contexts('remove', 'demo')).toMatchObject({ code: 0 });
    expect(await contexts('use', 'demo')).toMatchObject({ code: 2 });
    expect(fs.readFileSync(file, 'utf8')).not.toContain(bench.url);
  });

  it('take nothing that is no key or no address', async () => {
    expect(
      await bench.run(['contexts', 'add', 'x', '--url', 'https://x.test'], { input: 'password', env: {} }),
    ).toMatchObject({ code: 2 });
    expect(await contexts('add', 'x', '--url', 'ftp://x.test')).toMatchObject({ code: 2 });
    expect(await contexts('add', '__proto__', '--url', 'https://x.test')).toMatchObject({ code: 2 });
  });
});
