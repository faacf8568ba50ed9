import assert from 'node:assert/strict';
import { type EndpointDefinition, hasEntityTag } from '@drydock/contracts/platform/endpoint';
import { permissions } from '@drydock/contracts/platform/permissions';
import { isChaos } from '@drydock/testing/scope';
import { uuidv7 } from 'uuidv7';
import type { Caller } from '../access/internal-token';
import { endpointsOf, malformed, notAllowed, parametersOf } from './ask-endpoint';
import type { ServiceAnswer } from './call-service';
import { filterCases, type Item, wrongFor, wrongMoments } from './filter-cases';
import { fuzzOperation } from './fuzz-operation';
import { refusalOf, withoutRequestId } from './problem';
import { type CallOptions, callerOf } from './service-api';

/** Things of one caller's that operations can be tried on. */
export interface Things {
  /** By the name of the path parameter that leads to them. */
  params: Readonly<Record<string, string>>;
  /** By the name of the body's field that names them. */
  fields?: Readonly<Record<string, unknown>>;
}

/** A service that is up, and how to come by something to try its operations on. */
export interface ConformanceWorld {
  call(method: string, path: string, options: CallOptions & { caller: Caller }): Promise<ServiceAnswer>;
  /** With every permission. */
  owner: Caller;
  /** Somebody of another organisation, and somebody of the same in the other mode; empty where there is no such world. */
  strangers: readonly Caller[];
  /** With every permission, of an organisation that has nothing yet. Left out: of one that the service has never heard of. */
  newOwner?(): Promise<Caller>;
  /** Makes new things for that caller, in a state in which the operation succeeds. */
  makeThings(caller: Caller, endpoint: EndpointDefinition): Promise<Things>;
  /**
   * What an operation answers here where it cannot succeed, for want of a worker or a provider: `503 dependency_unavailable`. Everything else has to, so that
   * no check is left out without a word.
   */
  cannotSucceed: Readonly<Record<string, string>>;
  /** Operations that succeed after a wait for something that is not there, beside those that cannot succeed. */
  waiting?: readonly string[];
}

/** Milliseconds for one check: those of `npm run chaos` send thousands of requests, and some wait for a worker that is not there. */
export const conformanceLimitMs = isChaos ? 3_600_000 : 150_000;

export interface Check {
  name: string;
  run(world: ConformanceWorld): Promise<void>;
}

/**
 * What every operation of a service has to do, worked out from its contract alone: an operation that is added is checked without a new test.
 * The gateway's share, the headers of every answer and 401, is checked there.
 */
export const conformanceChecks = (service: EndpointDefinition['service']): Check[] =>
  endpointsOf(service).flatMap((endpoint) =>
    rules.flatMap(({ name, appliesTo, check }) =>
      appliesTo(endpoint)
        ? [
            {
              name: `${endpoint.id}: ${name}`,
              run: async (world: ConformanceWorld) => check(world, endpoint, await world.makeThings(world.owner, endpoint)),
            },
          ]
        : [],
    ),
  );

interface Rule {
  name: string;
  appliesTo(endpoint: EndpointDefinition): boolean;
  check(world: ConformanceWorld, endpoint: EndpointDefinition, things: Things): Promise<void>;
}

interface Sent {
  params?: Readonly<Record<string, string>>;
  search?: string;
  caller?: Caller;
  body?: unknown;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

const bodyOf = ({ example }: EndpointDefinition, { fields = {} }: Things): object | undefined =>
  example === undefined
    ? undefined
    : Object.fromEntries(Object.entries(example).map(([name, value]) => [name, name in fields ? fields[name] : value]));

/** Asks the operation as its contract has it, but for what `sent` says. */
function ask(world: ConformanceWorld, endpoint: EndpointDefinition, things: Things, sent: Sent = {}): Promise<ServiceAnswer> {
  const { params = {}, search = '', caller = world.owner, idempotencyKey, headers = {} } = sent;
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_placeholder, name: string) => {
    const value = params[name] ?? things.params[name];
    assert.ok(value !== undefined, `the world of this suite has no ${name}: add one to its makeThings`);
    return value;
  });
  const body = 'body' in sent ? sent.body : bodyOf(endpoint, things);
  return world.call(endpoint.method, `${path}${search}`, {
    caller,
    body,
    headers,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
}

const assertRefused = (answer: ServiceAnswer, refusal: string, what: string): void =>
  assert.equal(refusalOf(answer), refusal, `${what}: ${answer.text}`);

/** That of the outermost record, and ids of none; undefined where the path names none. */
function outermostOf(endpoint: EndpointDefinition): { name: string; refusal: string; missing: string[] } | undefined {
  const [name] = parametersOf(endpoint);
  const parameter = name === undefined ? undefined : endpoint.params?.[name];
  if (name === undefined || parameter === undefined || !('notFound' in parameter)) return undefined;
  return { name, refusal: `404 ${parameter.notFound}`, missing: parameter.isAnybodys ? ['x'] : [uuidv7(), 'x'] };
}

const canSucceed = (world: ConformanceWorld, { id }: EndpointDefinition): boolean => world.cannotSucceed[id] === undefined;

const assertSucceeded = ({ response }: EndpointDefinition, { status, text }: ServiceAnswer): void =>
  assert.equal(status, response.status, text);

/** Endpoints 1, 3, 4, 5 and 10 of the specification. Written down here, so that no other one is closed by a slip of its contract. */
const specifiedWithBody: ReadonlySet<string> = new Set([
  'createApiKey',
  'restoreSiteBackup',
  'restoreSiteVendorSnapshot',
  'restoreSiteOffsite',
  'upgradeDatabase',
]);

/** The types of answers that the specification fixes: they get no member of ours. */
const specifiedTypes: ReadonlySet<unknown> = new Set([
  'SiteBackupSurface',
  'VendorSnapshotSurface',
  'DeletedSite',
  'ComputeServer',
  'ManagedDatabase',
  'CreatedDatabase',
]);
const hasSpecifiedBody = ({ response: { schema } }: EndpointDefinition): boolean => specifiedTypes.has(schema?.meta()?.['id']);

const rules: readonly Rule[] = [
  {
    name: 'whatever it is asked, it answers as its contract says and does not break',
    appliesTo: ({ response }) => response.contentType !== 'text/event-stream',
    check: (world, endpoint, things) =>
      fuzzOperation({
        endpoint,
        things,
        outage: world.cannotSucceed[endpoint.id],
        isWaiting: [...Object.keys(world.cannotSucceed), ...(world.waiting ?? [])].includes(endpoint.id),
        makeThings: () => world.makeThings(world.owner, endpoint),
        goodBody: (own) => bodyOf(endpoint, own),
        ask: (own, sent) => ask(world, endpoint, own, sent),
      }),
  },
  {
    name: 'an undeclared query parameter is refused, or without a 422 to do it with takes no effect',
    appliesTo: () => true,
    check: async (world, endpoint, things) => {
      const answer = await ask(world, endpoint, things, { search: '?undeclared=1' });
      if (endpoint.undeclaredQuery === 'ignored') return assert.equal(answer.status, endpoint.response.status, answer.text);
      assertRefused(answer, '422 invalid_request', 'undeclared');
      assert.match(answer.text, /"pointer":"\?undeclared"/);
    },
  },
  {
    name: 'a permission that is missing is 403 before all else that is wrong, and named',
    appliesTo: (endpoint) => endpoint.permissions.length > 0,
    check: async (world, endpoint, things) => {
      for (const permission of endpoint.permissions) {
        const caller = { ...world.owner, scopes: permissions.filter((held) => held !== permission) };
        const params = Object.fromEntries(parametersOf(endpoint).map((name) => [name, 'x']));
        for (const sent of [{}, { params, search: '?undeclared=1', body: { undeclared: 1 }, idempotencyKey: 'not a key' }]) {
          const answer = await ask(world, endpoint, things, { ...sent, caller });
          assertRefused(answer, '403 permission_denied', permission);
          assert.match(answer.text, new RegExp(`"detail":"${permission}"`));
        }
      }
      const nobody = notAllowed(world.owner, endpoint);
      assertRefused(await ask(world, endpoint, things, { caller: nobody }), '403 permission_denied', 'no permission at all');
    },
  },
  {
    name: 'what is wrong with the request is 422 before it is asked whose the record is',
    appliesTo: (endpoint) => outermostOf(endpoint) !== undefined,
    check: async (world, endpoint, things) => {
      const outermost = outermostOf(endpoint);
      if (outermost === undefined) return;
      for (const id of outermost.missing) {
        const params = { [outermost.name]: id };
        const wrong: Array<[string, Sent]> = [
          ...(endpoint.undeclaredQuery === 'refused' ? [['422 invalid_request', { search: '?undeclared=1' }] as [string, Sent]] : []),
          ...(endpoint.body === undefined ? [] : [['422 invalid_request', { body: { undeclared: 1 } }] as [string, Sent]]),
          ...(endpoint.idempotency === 'ignored'
            ? []
            : [['422 idempotency_key_invalid', { idempotencyKey: 'not a key' }] as [string, Sent]]),
          ...(hasPages(endpoint) ? [['422 invalid_limit', { search: '?limit=0' }] as [string, Sent]] : []),
          ...(hasPages(endpoint) ? [['422 invalid_cursor', { search: '?cursor=x' }] as [string, Sent]] : []),
        ];
        for (const [refusal, sent] of wrong) {
          assertRefused(await ask(world, endpoint, things, { ...sent, params }), refusal, `${JSON.stringify(sent)} of ${id}`);
        }
        assertRefused(await ask(world, endpoint, things, { params }), outermost.refusal, id);
      }
    },
  },
  {
    name: 'a body that is no JSON is 400 and one of another type 415, and both are 422 where the specification closes the statuses',
    appliesTo: ({ body }) => body !== undefined,
    check: async (world, endpoint, things) => {
      const isClosed = specifiedWithBody.has(endpoint.id);
      const cut = await ask(world, endpoint, things, { body: Buffer.from('{"a":') });
      assertRefused(cut, isClosed ? '422 invalid_json' : '400 malformed_json', 'half an object');
      const text = await ask(world, endpoint, things, { body: Buffer.from('{}'), headers: { 'content-type': 'text/plain' } });
      assertRefused(text, isClosed ? '422 invalid_content_type' : '415 unsupported_media_type', 'text/plain');
    },
  },
  {
    name: 'a malformed id, a stranger’s, the other mode’s and one that never was get one identical 404',
    appliesTo: (endpoint) => outermostOf(endpoint) !== undefined,
    check: async (world, endpoint, things) => {
      const strange = await Promise.all(world.strangers.map((stranger) => world.makeThings(stranger, endpoint)));
      for (const name of parametersOf(endpoint)) {
        const parameter = endpoint.params?.[name];
        if (parameter === undefined || !('notFound' in parameter)) continue;
        const missing = withoutRequestId(await ask(world, endpoint, things, { params: { [name]: 'x' } }));
        assert.deepEqual([missing.status, Reflect.get(missing.body, 'code')], [404, parameter.notFound]);
        const others = parameter.isAnybodys ? [] : [uuidv7(), ...strange.map(({ params }) => params[name] ?? 'x')];
        for (const id of [...malformed, ...others]) {
          const answer = withoutRequestId(await ask(world, endpoint, things, { params: { [name]: id } }));
          assert.deepEqual(answer, missing, `${name} ${id}`);
        }
      }
    },
  },
  {
    name: 'of a record that is not the caller’s nothing inside is looked at: its own 404, whatever is named in it',
    appliesTo: (endpoint) => outermostOf(endpoint) !== undefined && parametersOf(endpoint).length > 1,
    check: async (world, endpoint, things) => {
      const [outer = '', ...inner] = parametersOf(endpoint);
      for (const id of [...malformed, uuidv7()]) {
        const params = { [outer]: uuidv7(), ...Object.fromEntries(inner.map((name) => [name, id])) };
        assertRefused(await ask(world, endpoint, things, { params }), outermostOf(endpoint)?.refusal ?? '', `${inner.join()} ${id}`);
      }
    },
  },
  {
    name: 'it pages as every list does',
    appliesTo: hasPages,
    check: async (world, endpoint, things) => {
      for (const limit of ['0', '-1', '1.5', '1e2', 'x', '', '%201', '9'.repeat(16)]) {
        assertRefused(await ask(world, endpoint, things, { search: `?limit=${limit}` }), '422 invalid_limit', `limit ${limit}`);
      }
      for (const cursor of ['', 'x', 'x.y', 'a'.repeat(1_000)]) {
        assertRefused(await ask(world, endpoint, things, { search: `?cursor=${cursor}` }), '422 invalid_cursor', `cursor ${cursor}`);
      }
      assertRefused(await ask(world, endpoint, things, { search: '?limit=1&limit=1' }), '422 invalid_request', 'limit twice');
      for (const [search, limit] of [
        ['', 50],
        ['?limit=1', 1],
        ['?limit=100', 100],
        ['?limit=101', 100],
      ] as const) {
        const answer = await ask(world, endpoint, things, { search });
        assertSucceeded(endpoint, answer);
        const { page } = answer.json as { page: { limit: number; has_more: boolean; next_cursor: string | null } };
        assert.deepEqual([page.limit, page.next_cursor !== null], [limit, page.has_more], answer.text);
      }
    },
  },
  {
    name: 'a filter gives what it names and nothing else, also on the next page, and refuses what it cannot mean',
    appliesTo: hasFilters,
    check: async (world, endpoint) => {
      const caller = (await world.newOwner?.()) ?? callerOf();
      const { query } = endpoint;
      const things = await world.makeThings(caller, endpoint);
      if (parametersOf(endpoint).length === 0) for (let more = 0; more < 2; more += 1) await world.makeThings(caller, endpoint);
      const list = async (search: string): Promise<Item[]> => {
        const answer = await ask(world, endpoint, things, { search, caller });
        assertSucceeded(endpoint, answer);
        const { data, backups, page } = answer.json as { data?: Item[]; backups?: Item[]; page: { next_cursor: string | null } };
        const items = data ?? backups ?? [];
        return page.next_cursor === null ? items : [...items, ...(await list(`${search.split('&cursor=')[0]}&cursor=${page.next_cursor}`))];
      };
      const all = await list('?limit=1');
      assert.ok(all.length > 0, 'the world of this suite makes nothing that is in this list');
      for (const [name, cases] of Object.entries(filterCases(all))) {
        if (query === undefined || !(name in query.shape)) continue;
        for (const [value, isMeant] of cases) {
          const found = await list(`?limit=1&${name}=${encodeURIComponent(value)}`);
          assert.deepEqual(found, all.filter(isMeant), `${name}=${value}`);
        }
        for (const wrong of wrongFor[name] ?? wrongMoments) {
          const refused = await ask(world, endpoint, things, { search: `?${name}=${encodeURIComponent(wrong)}`, caller });
          assertRefused(refused, '422 invalid_request', `${name}=${wrong}`);
          assert.ok(refused.text.includes(`"pointer":"?${name}"`), refused.text);
        }
      }
      if (all.length === 1) return;
      const { page } = (await ask(world, endpoint, things, { search: '?limit=1', caller })).json as { page: { next_cursor: string } };
      const [name = ''] = Object.keys(filterCases(all)).filter((filter) => query !== undefined && filter in query.shape);
      const [[value] = ['']] = filterCases(all)[name] ?? [];
      const search = `?${name}=${encodeURIComponent(value)}&cursor=${page.next_cursor}`;
      assertRefused(
        await ask(world, endpoint, things, { search, caller }),
        '422 invalid_cursor',
        'the cursor of a list without this filter',
      );
    },
  },
  {
    name: 'who has read it already gets 304 for its ETag, weak or in a list, and the whole for any other',
    appliesTo: (endpoint) => endpoint.method === 'GET' && hasEntityTag(endpoint),
    check: async (world, endpoint, things) => {
      if (!canSucceed(world, endpoint)) return;
      const had = await ask(world, endpoint, things);
      assertSucceeded(endpoint, had);
      const etag = String(had.headers['etag']);
      assert.match(etag, /^"[A-Za-z0-9_-]{27}"$/);
      assert.equal((await ask(world, endpoint, things, { headers: { 'if-none-match': '"other", other, ""' } })).status, 200);
      for (const named of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await ask(world, endpoint, things, { headers: { 'if-none-match': named } });
        // A list's cursor and a view of the moment are made anew for each answer.
        if (named !== '*' && again.status === 200) assert.notEqual(again.headers['etag'], etag, `${named}: ${again.text}`);
        else assert.deepEqual([again.status, again.text, again.headers['content-type']], [304, '', undefined], named);
      }
    },
  },
  {
    name: 'a change that names what it was made to by If-Match is made to nothing else, and of two that race one is made',
    appliesTo: ({ method }) => method === 'PATCH',
    check: async (world, endpoint, things) => {
      const read = endpointsOf(endpoint.service).find(({ method, path }) => method === 'GET' && path === endpoint.path);
      assert.ok(read !== undefined, 'what can be patched can be read');
      const now = await ask(world, read, things);
      const etag = String(now.headers['etag']);
      for (const stale of ['"other"', `W/${etag}`, etag.slice(1, -1), '']) {
        const refused = await ask(world, endpoint, things, { headers: { 'if-match': stale } });
        assertRefused(refused, '412 precondition_failed', stale);
      }
      assert.equal((await ask(world, read, things)).text, now.text, 'a refused change changes nothing');
      const race = await Promise.all([1, 2].map(() => ask(world, endpoint, things, { headers: { 'if-match': `"other", ${etag}` } })));
      const made = race.find(({ status }) => status === 200);
      assert.deepEqual(
        race.map(({ status }) => status).sort((a, b) => a - b),
        [200, 412],
        race.map(({ text }) => text).join(),
      );
      assert.equal((await ask(world, read, things)).text, made?.text, 'a PATCH answers what GET does');
      assertSucceeded(endpoint, await ask(world, endpoint, things, { headers: { 'if-match': '*' } }));
      assertSucceeded(endpoint, await ask(world, endpoint, things));
    },
  },
  {
    name: 'an Idempotency-Key belongs to the record, however its id is written, and to the body as it was sent',
    appliesTo: (endpoint) => endpoint.idempotency === 'accepted',
    check: async (world, endpoint, things) => {
      assertRefused(await ask(world, endpoint, things, { idempotencyKey: 'not a key' }), '422 idempotency_key_invalid', 'a bad key');
      if (!canSucceed(world, endpoint)) return;
      const idempotencyKey = uuidv7();
      const first = await ask(world, endpoint, things, { idempotencyKey });
      assertSucceeded(endpoint, first);
      const params = Object.fromEntries(
        Object.entries(things.params).map(([name, id]) => {
          const parameter = endpoint.params?.[name];
          return [name, parameter !== undefined && 'notFound' in parameter ? id.toUpperCase() : id];
        }),
      );
      const again = await ask(world, endpoint, things, { idempotencyKey, params });
      assert.deepEqual(
        [again.text, again.headers['idempotent-replayed'], again.headers['location']],
        [first.text, 'true', first.headers['location']],
      );
    },
  },
  {
    name: 'what it makes, or the work that makes it, can be read where its Location points',
    appliesTo: ({ response }) => response.status === 201 || response.status === 202,
    check: async (world, endpoint, things) => {
      if (!canSucceed(world, endpoint)) return;
      const answer = await ask(world, endpoint, things);
      assertSucceeded(endpoint, answer);
      const location = answer.headers['location'];
      assert.ok(typeof location === 'string', `no Location: ${answer.text}`);
      const made = await world.call('GET', location, { caller: world.owner });
      assert.equal(made.status, 200, `${location}: ${made.text}`);
      assert.equal(answer.headers['retry-after'], answer.status === 202 ? '1' : undefined);
      const { workflow_id: told, id } = Object(answer.json) as { workflow_id?: string; id?: string };
      const workflowId = answer.status === 202 ? location.split('/').at(-1) : undefined;
      assert.equal(answer.headers['x-workflow-id'], workflowId);
      // An answer with a workflow's own view has its id as that.
      if (workflowId !== undefined && !hasSpecifiedBody(endpoint)) assert.ok(workflowId === told || workflowId === id, answer.text);
    },
  },
  {
    name: 'it succeeds as its contract says: status, type and every member; answer and refusal have X-Request-Id and Cache-Control',
    appliesTo: () => true,
    check: async (world, endpoint, things) => {
      const answer = await ask(world, endpoint, things);
      if (!canSucceed(world, endpoint)) assertRefused(answer, world.cannotSucceed[endpoint.id] ?? '', 'what cannot succeed');
      else {
        assertSucceeded(endpoint, answer);
        const { schema, contentType = 'application/json' } = endpoint.response;
        const type = answer.text === '' ? '' : String(answer.headers['content-type']).split(';')[0];
        assert.equal(type, endpoint.response.status === 204 ? '' : contentType);
        if (schema !== undefined && contentType === 'application/json')
          assert.deepEqual(schema.safeParse(answer.json).error?.issues, undefined, answer.text);
      }
      for (const { headers, status, json } of [answer, await ask(world, endpoint, things, { caller: callerOf({ scopes: [] }) })]) {
        assert.match(String(headers['x-request-id']), /^[A-Za-z0-9_-]{8,64}$/);
        assert.equal(headers['cache-control'], 'no-store');
        if (status >= 400) assert.equal(Reflect.get(json as object, 'request_id'), headers['x-request-id']);
      }
    },
  },
];

function hasFilters({ query }: EndpointDefinition): boolean {
  return query !== undefined && ['status', 'kind', 'created_after', 'text'].some((name) => name in query.shape);
}

function hasPages({ query }: EndpointDefinition): boolean {
  return query !== undefined && 'cursor' in query.shape;
}
