import assert from 'node:assert/strict';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { permissions } from '@drydock/contracts/platform/permissions';
import { isChaos } from '@drydock/testing/scope';
import { uuidv7 } from 'uuidv7';
import { endpointsOf, malformed, notAllowed, parametersOf } from './ask-endpoint';
import { bodyRules } from './conformance-bodies';
import { entityTagRules } from './conformance-etags';
import { listRules } from './conformance-lists';
import {
  ask,
  assertRefused,
  assertSucceeded,
  bodyOf,
  type ConformanceWorld,
  canSucceed,
  hasPages,
  type Rule,
  type Sent,
} from './conformance-rule';
import { fuzzOperation } from './fuzz-operation';
import { withoutRequestId } from './problem';
import { callerOf } from './service-api';

/**
 * Milliseconds for one check. A check of `npm run chaos` sends thousands of requests, and some of them wait for a
 * worker that does not run.
 */
export const conformanceLimitMs = isChaos ? 3_600_000 : 150_000;

export interface Check {
  name: string;
  run(world: ConformanceWorld): Promise<void>;
}

/**
 * The checks of every operation of a service. They follow from its contract alone, so a new operation needs no new
 * test. The 401 is checked in the gateway's tests.
 */
export const conformanceChecks = (service: EndpointDefinition['service']): Check[] =>
  endpointsOf(service).flatMap((endpoint) =>
    rules.flatMap(({ name, appliesTo, check }) =>
      appliesTo(endpoint)
        ? [
            {
              name: `${endpoint.id}: ${name}`,
              run: async (world: ConformanceWorld) =>
                check(world, endpoint, await world.makeThings(world.owner, endpoint)),
            },
          ]
        : [],
    ),
  );

/**
 * The first parameter of the path, its refusal, and ids that name nothing. Undefined if the path has no parameter, or
 * if that parameter is not the id of a record.
 */
function outermostOf(endpoint: EndpointDefinition): { name: string; refusal: string; missing: string[] } | undefined {
  const [name] = parametersOf(endpoint);
  const parameter = name === undefined ? undefined : endpoint.params?.[name];
  if (name === undefined || parameter === undefined || !('notFound' in parameter)) return undefined;
  return { name, refusal: `404 ${parameter.notFound}`, missing: parameter.isAnybodys ? ['x'] : [uuidv7(), 'x'] };
}

/** The types of answers whose members the specification fixes, so that none may be added. */
const specifiedTypes: ReadonlySet<unknown> = new Set([
  'SiteBackupSurface',
  'VendorSnapshotSurface',
  'DeletedSite',
  'ComputeServer',
  'ManagedDatabase',
  'CreatedDatabase',
]);
const hasSpecifiedBody = ({ response: { schema } }: EndpointDefinition): boolean =>
  specifiedTypes.has(schema?.meta()?.['id']);

const rules: readonly Rule[] = [
  ...bodyRules,
  ...listRules,
  ...entityTagRules,
  {
    name: 'it answers every request as its contract says',
    appliesTo: () => true,
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
    name: 'an undeclared query parameter is refused, or ignored if the contract has no 422',
    appliesTo: () => true,
    check: async (world, endpoint, things) => {
      const answer = await ask(world, endpoint, things, { search: '?undeclared=1' });
      if (endpoint.undeclaredQuery === 'ignored')
        return assert.equal(answer.status, endpoint.response.status, answer.text);
      assertRefused(answer, '422 invalid_request', 'undeclared');
      assert.match(answer.text, /"pointer":"\?undeclared"/);
    },
  },
  {
    name: 'a permission that is missing is named in a 403, whatever else is wrong',
    appliesTo: (endpoint) => endpoint.permissions.length > 0,
    check: async (world, endpoint, things) => {
      for (const permission of endpoint.permissions) {
        const caller = { ...world.owner, scopes: permissions.filter((held) => held !== permission) };
        const params = Object.fromEntries(parametersOf(endpoint).map((name) => [name, 'x']));
        for (const sent of [
          {},
          { params, search: '?undeclared=1', body: { undeclared: 1 }, idempotencyKey: 'not a key' },
        ]) {
          const answer = await ask(world, endpoint, things, { ...sent, caller });
          assertRefused(answer, '403 permission_denied', permission);
          assert.match(answer.text, new RegExp(`"detail":"${permission}"`));
        }
      }
      const nobody = notAllowed(world.owner, endpoint);
      assertRefused(
        await ask(world, endpoint, things, { caller: nobody }),
        '403 permission_denied',
        'no permission at all',
      );
    },
  },
  {
    name: 'a malformed request is 422 even if the record does not exist',
    appliesTo: (endpoint) => outermostOf(endpoint) !== undefined,
    check: async (world, endpoint, things) => {
      const outermost = outermostOf(endpoint);
      if (outermost === undefined) return;
      for (const id of outermost.missing) {
        const params = { [outermost.name]: id };
        const wrong: Array<[string, Sent]> = [
          ...(endpoint.undeclaredQuery === 'refused'
            ? [['422 invalid_request', { search: '?undeclared=1' }] as [string, Sent]]
            : []),
          ...(endpoint.body === undefined
            ? []
            : [['422 invalid_request', { body: { undeclared: 1 } }] as [string, Sent]]),
          ...(endpoint.idempotency === 'ignored'
            ? []
            : [['422 idempotency_key_invalid', { idempotencyKey: 'not a key' }] as [string, Sent]]),
          ...(hasPages(endpoint) ? [['422 invalid_limit', { search: '?limit=0' }] as [string, Sent]] : []),
          ...(hasPages(endpoint) ? [['422 invalid_cursor', { search: '?cursor=x' }] as [string, Sent]] : []),
        ];
        for (const [refusal, sent] of wrong) {
          assertRefused(
            await ask(world, endpoint, things, { ...sent, params }),
            refusal,
            `${JSON.stringify(sent)} of ${id}`,
          );
        }
        assertRefused(await ask(world, endpoint, things, { params }), outermost.refusal, id);
      }
    },
  },
  {
    name: 'a malformed id, a stranger’s, the other mode’s and an unknown id get one identical 404',
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
    name: 'any path below a record that the caller does not have gets the 404 of that record',
    appliesTo: (endpoint) => outermostOf(endpoint) !== undefined && parametersOf(endpoint).length > 1,
    check: async (world, endpoint, things) => {
      const [outer = '', ...inner] = parametersOf(endpoint);
      for (const id of [...malformed, uuidv7()]) {
        const params = { [outer]: uuidv7(), ...Object.fromEntries(inner.map((name) => [name, id])) };
        assertRefused(
          await ask(world, endpoint, things, { params }),
          outermostOf(endpoint)?.refusal ?? '',
          `${inner.join()} ${id}`,
        );
      }
    },
  },
  {
    name: 'an Idempotency-Key is replayed for the same record, also if its id is in upper case',
    appliesTo: (endpoint) => endpoint.idempotency === 'accepted',
    check: async (world, endpoint, things) => {
      assertRefused(
        await ask(world, endpoint, things, { idempotencyKey: 'not a key' }),
        '422 idempotency_key_invalid',
        'a bad key',
      );
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
    name: 'the Location of a 201 or 202 leads to the new record or to the workflow',
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
      // An answer that shows the workflow itself has the workflow's id as `id`.
      if (workflowId !== undefined && !hasSpecifiedBody(endpoint))
        assert.ok(workflowId === told || workflowId === id, answer.text);
    },
  },
  {
    name: 'it succeeds as its contract says: status, type and every member; answer and refusal have X-Request-Id and Cache-Control',
    appliesTo: () => true,
    check: async (world, endpoint, things) => {
      const answer = await ask(world, endpoint, things);
      if (!canSucceed(world, endpoint))
        assertRefused(answer, world.cannotSucceed[endpoint.id] ?? '', 'what cannot succeed');
      else {
        assertSucceeded(endpoint, answer);
        const { schema, contentType = 'application/json' } = endpoint.response;
        const type = answer.text === '' ? '' : String(answer.headers['content-type']).split(';')[0];
        assert.equal(type, endpoint.response.status === 204 ? '' : contentType);
        if (schema !== undefined && contentType === 'application/json')
          assert.deepEqual(schema.safeParse(answer.json).error?.issues, undefined, answer.text);
      }
      for (const { headers, status, json } of [
        answer,
        await ask(world, endpoint, things, { caller: callerOf({ scopes: [] }) }),
      ]) {
        assert.match(String(headers['x-request-id']), /^[A-Za-z0-9_-]{8,64}$/);
        assert.equal(headers['cache-control'], 'no-store');
        if (status >= 400) assert.equal(Reflect.get(json as object, 'request_id'), headers['x-request-id']);
      }
    },
  },
];
