import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  ConnectionError,
  createDrydock,
  type Drydock,
  ProblemError,
  WaitTimeoutError,
  type Workflow,
  WorkflowError,
} from './drydock';

const path = { siteId: 'site-1' };
const restore = { path, body: { backup_id: 'backup-1' } };
const workflowPath = '/v1/sites/site-1/workflows/workflow-1';
const problemOf = (status: number, code: string) => ({
  type: `/problems/${code}`,
  title: 'A title',
  status,
  detail: 'Do this.',
  code,
  request_id: 'request-1',
});
const workflowOf = (status: Workflow['status'], progress: number): Workflow => ({
  id: 'workflow-1',
  kind: 'restore_site_backup',
  subject: { type: 'site', id: 'site-1' },
  status,
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: null,
  finished_at: null,
  progress,
  steps: [],
  error: null,
  findings: [],
  trace_id: null,
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response
      .writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json', ...headers })
      .end(JSON.stringify(body));
/** Sends a part of the body that it has announced, and then breaks off. */
const halfAnAnswer: Answer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"id":', () => response.destroy());
};
const hangUp: Answer = (request) => void request.socket.destroy();

/** The test's own server on a real socket. It sends `answers` in order. */
let server: Server;
let answers: Answer[];
let seen: IncomingMessage[];
let drydock: Drydock;
let baseUrl: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push(request);
    const answer = answers.shift();
    if (answer === undefined) throw new Error(`nothing is left to answer ${request.method} ${request.url} with`);
    request.resume().once('end', () => answer(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  answers = [];
  seen = [];
  drydock = createDrydock({ baseUrl, apiKey: 'dd_test_key' });
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
const keys = (): unknown[] => seen.map(({ headers }) => headers['idempotency-key']);

/** Sends server-sent events, and ends. */
const stream =
  (text: string): Answer =>
  (_request, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);

describe('a call', () => {
  it('is sent again with the same Idempotency-Key when its connection breaks or the server is not available', async () => {
    answers = [
      hangUp,
      json(503, problemOf(503, 'overloaded'), { 'retry-after': '0' }),
      json(202, { on_demand_limit: 5 }),
    ];
    expect(await drydock.restoreSiteBackup(restore)).toEqual({ on_demand_limit: 5 });
    expect(seen).toHaveLength(3);
    expect(new Set(keys()).size).toBe(1);
    expect(keys()[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen[0]?.headers.authorization).toBe('Bearer dd_test_key');
  });

  it('gives what is known again while it is true, and changes nothing that is not as it is known', async () => {
    answers = [
      json(200, { name: 'Shop' }, { etag: '"1"' }),
      (_request, response) => void response.writeHead(304, { etag: '"1"' }).end(),
      json(200, { name: 'Store' }, { etag: '"2"' }),
      json(412, problemOf(412, 'precondition_failed')),
    ];
    const site = await drydock.getSite({ path });
    expect(await drydock.getSite({ path }, { known: site })).toBe(site);
    const changed = await drydock.updateSite({ path, body: { name: 'Store' } }, { known: site });
    await expect(drydock.updateSite({ path, body: { name: 'Shop' } }, { known: changed })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    const sent = seen.map(({ headers }) => [headers['if-none-match'], headers['if-match']]);
    expect(sent).toEqual([
      [undefined, undefined],
      ['"1"', undefined],
      [undefined, '"1"'],
      [undefined, '"2"'],
    ]);
  });

  it('is not sent with a condition that it could not keep', async () => {
    answers = [json(200, { name: 'Shop' }, { etag: '"1"' })];
    const site = await drydock.getSite({ path });
    await expect(drydock.updateSite({ path, body: {} }, { known: { ...site } })).rejects.toThrow(
      'known is nothing that a call',
    );
    await expect(drydock.deleteSite({ path }, { known: site })).rejects.toThrow('a DELETE is not made dependent');
    expect(seen).toHaveLength(1);
  });

  it('is not begun with a key that no header can carry, and the refusal does not show it', () => {
    for (const key of ['', 'dd_live_secret\n', 'dd_live_sécret', 'dd live']) {
      expect(() => createDrydock({ baseUrl, apiKey: key })).toThrow(/^apiKey is no key/);
    }
  });

  it('is named anew each time, or as its caller says', async () => {
    answers = [json(202, {}), json(202, {}), json(202, {})];
    await drydock.restoreSiteBackup(restore);
    await drydock.restoreSiteBackup(restore);
    await drydock.restoreSiteBackup(restore, { idempotencyKey: 'mine' });
    expect(new Set(keys()).size).toBe(3);
    expect(keys()[2]).toBe('mine');
  });

  it('is not sent again where a repeat could do harm', async () => {
    answers = [hangUp];
    await expect(drydock.deleteSite({ path })).rejects.toThrow(ConnectionError);
    answers = [json(503, problemOf(503, 'dependency_unavailable'), { 'retry-after': '0' })];
    await expect(drydock.deleteSite({ path })).rejects.toMatchObject({ code: 'dependency_unavailable' });
    expect(seen).toHaveLength(2);
  });

  it('whose answer breaks off is sent again where a repeat is safe, and otherwise fails as not answered', async () => {
    answers = [halfAnAnswer, json(200, { id: 'site-1' })];
    expect(await drydock.getSite({ path })).toEqual({ id: 'site-1' });
    answers = [halfAnAnswer];
    drydock = createDrydock({ baseUrl, apiKey: 'dd_test_key', retries: 0 });
    await expect(drydock.getSite({ path })).rejects.toBeInstanceOf(ConnectionError);
  });

  it('is sent again whatever it is when it was refused for its number only, or did not arrive', async () => {
    const unheard = json(408, problemOf(408, 'request_timeout'));
    answers = [unheard, json(429, problemOf(429, 'rate_limited'), { 'retry-after': '0' }), json(202, { id: 'site-1' })];
    expect(await drydock.deleteSite({ path })).toEqual({ id: 'site-1' });
  });

  it.each([
    [429, 'on_demand_limit_reached'],
    [503, 'dependency_unavailable'],
  ])('that may be sent again only after more than a minute throws the problem at once: %i', async (status, code) => {
    answers = [json(status, problemOf(status, code), { 'retry-after': '61' }), json(202, {})];
    await expect(drydock.takeSiteBackup({ path, body: {} })).rejects.toMatchObject({ code, retryAfterSeconds: 61 });
    expect(seen).toHaveLength(1);
  });

  it('that is refused throws the problem, and is not sent again', async () => {
    answers = [
      json(422, {
        ...problemOf(422, 'invalid_request'),
        errors: [{ pointer: '/backup_id', code: 'required', detail: 'Give it.' }],
      }),
    ];
    const error = await drydock.restoreSiteBackup(restore).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({
      status: 422,
      code: 'invalid_request',
      requestId: 'request-1',
      errors: [{ pointer: '/backup_id' }],
    });
  });

  it('that something in between answered says so', async () => {
    drydock = createDrydock({ baseUrl, apiKey: 'dd_test_key', retries: 0 });
    answers = [
      (_request, response) => void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>'),
    ];
    await expect(drydock.getSite({ path })).rejects.toThrow(/answered 502, and not as Drydock does: <h1>Bad gateway/);
  });

  it('that no answer came to says what failed, also at a name with several addresses', async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    for (const host of ['127.0.0.1', 'localhost']) {
      drydock = createDrydock({ baseUrl: `http://${host}:${port}`, apiKey: 'dd_test_key', retries: 0 });
      await expect(drydock.getSite({ path })).rejects.toThrow(/^GET \/v1\/sites\/.+ was not answered: .*ECONNREFUSED/);
    }
  });

  it('ends when its signal is aborted, also between two attempts', async () => {
    const controller = new AbortController();
    answers = [
      (request, response) => {
        json(503, problemOf(503, 'overloaded'), { 'retry-after': '60' })(request, response);
        setTimeout(() => controller.abort(new Error('enough')), 50);
      },
    ];
    await expect(drydock.getSite({ path }, { signal: controller.signal })).rejects.toThrow('enough');
  });

  it('keeps what is in a value out of its path', async () => {
    answers = [json(200, {})];
    await drydock.getSite({ path: { siteId: '../../v1/me?x' } });
    expect(seen[0]?.url).toBe('/v1/sites/..%2F..%2Fv1%2Fme%3Fx');
    await expect(drydock.getSite({ path: { siteId: '..' } })).rejects.toThrow('path.siteId of getSite cannot be ..');
  });

  it.each(['http://elsewhere.test/v1/me', '//elsewhere.test/v1/me', '/\\elsewhere.test/v1/me'])(
    'sends its key nowhere else: %s',
    async (elsewhere) => {
      await expect(drydock.wait(elsewhere)).rejects.toThrow(`is no path of ${baseUrl}`);
      expect(seen).toEqual([]);
    },
  );
});

describe('a list', () => {
  it('is read page after page, as far as it is asked for', async () => {
    const page = (names: string[], next: string | null) =>
      json(200, { data: names.map((name) => ({ name })), page: { next_cursor: next } });
    answers = [page(['a', 'b'], 'next'), page(['c'], null)];
    const names: string[] = [];
    for await (const { name } of drydock.all.listSites({ query: { limit: 2 } })) names.push(name);
    expect([names, seen.map(({ url }) => url)]).toEqual([
      ['a', 'b', 'c'],
      ['/v1/sites?limit=2', '/v1/sites?limit=2&cursor=next'],
    ]);
    answers = [page(['a', 'b'], 'next')];
    for await (const { name } of drydock.all.listSites()) if (name === 'a') break;
    expect(answers).toEqual([]);
  });
});

describe('long work', () => {
  const accepted = json(202, {}, { location: workflowPath });

  it('is waited for, and each new state is told once', async () => {
    const [running, done] = [workflowOf('running', 40), workflowOf('succeeded', 100)];
    answers = [accepted, json(200, running), json(200, running), json(200, done)];
    const told: number[] = [];
    expect(
      await drydock.finish.restoreSiteBackup(restore, { onProgress: ({ progress }) => told.push(progress) }),
    ).toEqual(done);
    expect(told).toEqual([40, 100]);
  });

  it.each(['failed', 'needs_attention'] as const)('that is %s throws what it says of itself', async (status) => {
    answers = [accepted, json(200, { ...workflowOf(status, 40), error: problemOf(422, 'backup_tampered') })];
    await expect(drydock.finish.restoreSiteBackup(restore)).rejects.toThrow(WorkflowError);
    answers = [json(200, workflowOf(status, 40))];
    await expect(drydock.wait(workflowPath)).rejects.toMatchObject({ name: 'WorkflowError', workflow: { status } });
  });

  it('hands out its answer before it is waited for, because no later answer has its password', async () => {
    const database = { id: 'database-1', password: 'only here' };
    const plan = { engine: 'postgres', engine_version: '16', size: 'small', high_availability: false } as const;
    const order = { body: { label: 'Orders', ...plan } };
    const told: unknown[] = [];
    const onAccepted = async (answer: { id: string; password: string }, path: string): Promise<void> => {
      await Promise.resolve();
      told.push(answer, path, seen.length);
    };
    answers = [json(202, database, { location: workflowPath }), json(200, workflowOf('succeeded', 100))];
    await drydock.finish.createDatabase(order, { onAccepted });
    expect(told).toEqual([database, workflowPath, 1]);
  });

  it('that was accepted is named by each error that comes later, so that nobody asks for it again', async () => {
    drydock = createDrydock({ baseUrl, apiKey: 'dd_test_key', retries: 0 });
    const failed = { ...workflowOf('failed', 40), error: problemOf(422, 'backup_tampered') };
    for (const later of [hangUp, json(403, problemOf(403, 'permission_denied')), json(200, failed)]) {
      answers = [accepted, later];
      await expect(drydock.finish.restoreSiteBackup(restore)).rejects.toMatchObject({ workflowPath });
    }
    answers = [accepted, json(200, workflowOf('running', 1))];
    await expect(drydock.finish.restoreSiteBackup(restore, { timeoutMs: 0 })).rejects.toMatchObject({ workflowPath });
    answers = [hangUp, json(422, problemOf(422, 'invalid_request'))];
    for (const _refused of [1, 2])
      await expect(drydock.finish.restoreSiteBackup(restore)).rejects.toMatchObject({ workflowPath: null });
  });

  it('that takes longer than the caller waits goes on', async () => {
    answers = [accepted, json(200, workflowOf('running', 1)), json(200, workflowOf('running', 2))];
    await expect(drydock.finish.restoreSiteBackup(restore, { timeoutMs: 100 })).rejects.toThrow(WaitTimeoutError);
  });

  it('is watched to its end; a stream that breaks is taken up behind its last event', async () => {
    const event = (id: string, progress: number): string =>
      `id: ${id}\nevent: workflow\ndata: ${JSON.stringify(workflowOf('running', progress))}\n\n`;
    const broken =
      (text: string, end: (response: ServerResponse) => void): Answer =>
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(`: hello\n\n${text}`, () => setTimeout(() => end(response), 20));
      };
    answers = [
      broken(event('1', 10) + event('2', 20).slice(0, 30), (response) => response.destroy()),
      broken(event('2', 20), (response) => response.end()),
      (_request, response) => void response.writeHead(204).end(),
    ];
    const progress: number[] = [];
    for await (const workflow of drydock.watch(workflowPath)) progress.push(workflow.progress);
    expect(progress).toEqual([10, 20]);
    expect(seen.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', '2']);
  });
});

describe('a stream that has been open', () => {
  const event = (id: string): Answer => stream(`id: ${id}\nevent: card.create\ndata: ${JSON.stringify({ id })}\n\n`);
  const state = stream(`id: 1\nevent: workflow\ndata: ${JSON.stringify(workflowOf('running', 10))}\n\n`);
  const ended: Answer = (_request, response) => void response.writeHead(204).end();
  const badGateway: Answer = (_request, response) =>
    void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
  const notNow = json(503, problemOf(503, 'overloaded'), { 'retry-after': '0' });
  // Each outage is longer than a call is repeated, so that the stream itself has to try again.
  beforeEach(() => {
    drydock = createDrydock({ baseUrl, apiKey: 'dd_test_key', retries: 0 });
  });
  const firstOf = async (count: number, options: { signal?: AbortSignal } = {}): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { id } of drydock.events(options)) if (ids.push(id) === count) break;
    return ids;
  };

  it.each([
    ['hangs up', hangUp],
    ['is behind a proxy that answers for it', badGateway],
    ['has no time', notNow],
    ['has had too many calls', json(429, problemOf(429, 'rate_limited'), { 'retry-after': '0' })],
  ])(
    'is taken up where it was when Drydock %s for longer than a call is repeated',
    async (_what, answer) => {
      answers = [event('a'), answer, event('b')];
      expect(await firstOf(2)).toEqual(['a', 'b']);
      expect(seen.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'a', 'a']);
    },
    30_000,
  );

  it('is taken up also where it is of a workflow', async () => {
    answers = [state, hangUp, ended];
    const progress: number[] = [];
    for await (const workflow of drydock.watch(workflowPath)) progress.push(workflow.progress);
    expect([progress, answers]).toEqual([[10], []]);
  }, 30_000);

  it('waits longer from one attempt to the next, and as long as Drydock says', async () => {
    answers = [event('a'), json(503, problemOf(503, 'overloaded'), { 'retry-after': '3' }), hangUp, event('b')];
    const begun = performance.now();
    expect(await firstOf(2)).toEqual(['a', 'b']);
    // The pauses are 3 s instead of 2 s, and then 4 s.
    expect(performance.now() - begun).toBeGreaterThan(6_900);
  }, 60_000);

  it('ends when its signal is aborted during such a pause', async () => {
    const controller = new AbortController();
    const refused: Answer = (request, response) => {
      json(503, problemOf(503, 'overloaded'), { 'retry-after': '3600' })(request, response);
      setTimeout(() => controller.abort(new Error('enough')), 50);
    };
    answers = [event('a'), refused];
    await expect(firstOf(2, { signal: controller.signal })).rejects.toThrow('enough');
  });

  it('ends with a refusal that no waiting changes, and one that was never open fails as a call does', async () => {
    answers = [event('a'), json(401, problemOf(401, 'unauthenticated'))];
    await expect(firstOf(2)).rejects.toMatchObject({ code: 'unauthenticated' });
    answers = [hangUp];
    await expect(firstOf(1)).rejects.toBeInstanceOf(ConnectionError);
    answers = [notNow];
    await expect(drydock.watch(workflowPath).next()).rejects.toMatchObject({ code: 'overloaded' });
  });
});

describe('the types', () => {
  type Takes<Id extends keyof Drydock, Given> = Drydock[Id] extends (...given: infer Arguments) => unknown
    ? Given extends Arguments
      ? true
      : false
    : never;
  type Finishes<Id extends keyof Drydock['finish'], Given> =
    Given extends Parameters<Drydock['finish'][Id]> ? true : false;
  type NewDatabase = Parameters<Drydock['createDatabase']>[0]['body'];
  type Has<Key extends PropertyKey, Of> = Key extends keyof Of ? true : false;

  // TypeScript reports an error if one of these types changes.
  const site = { siteId: '' };
  const facts = {
    aListNeedsNothing: true satisfies Takes<'listSites', []>,
    aSiteNeedsItsId: false satisfies Takes<'getSite', []>,
    aSiteIsNamed: true satisfies Takes<'getSite', [{ path: typeof site }]>,
    aRestoreNamesItsBackup: false satisfies Takes<'restoreSiteBackup', [{ path: typeof site }]>,
    aRestartHasNoBody: true satisfies Takes<'restartSiteApp', [{ path: typeof site }]>,
    aListHasItems: true satisfies Has<'listSites', Drydock['all']>,
    aSiteHasNone: false satisfies Has<'getSite', Drydock['all']>,
    aRestoreIsLongWork: true satisfies Has<'restoreSiteBackup', Drydock['finish']>,
    aRestartIsNot: false satisfies Has<'restartSiteApp', Drydock['finish']>,
    aStreamIsWatched: false satisfies Has<'watchSiteWorkflow', Drydock>,
    aPasswordIsNotThrownAway: false satisfies Finishes<'createDatabase', [{ body: NewDatabase }]>,
    aPasswordIsHandedOut: true satisfies Finishes<
      'createDatabase',
      [{ body: NewDatabase }, { onAccepted: () => void }]
    >,
    aRestoreMayBeWatched: true satisfies Finishes<'restoreSiteBackup', [typeof restore, { onAccepted: () => void }]>,
    aSurfaceIsTyped: 1 satisfies Awaited<ReturnType<Drydock['restoreSiteBackup']>>['on_demand_limit'],
    aDeletionGivesNothing: undefined satisfies Awaited<ReturnType<Drydock['revokeApiKey']>>,
  };

  it('are checked by the compiler; a call without what its path needs is refused at run time too', async () => {
    expect(Object.keys(facts)).toHaveLength(15);
    await expect(drydock.getSite({ path: { siteId: '' } })).rejects.toThrow('getSite needs path.siteId');
    expect(seen).toEqual([]);
  });
});
