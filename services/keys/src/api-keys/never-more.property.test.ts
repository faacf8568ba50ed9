import { permissions } from '@drydock/contracts/platform/permissions';
import { refusalOf } from '@drydock/service/testing/problem';
import { sampleOf } from '@drydock/testing/seeded-random';
import fc from 'fast-check';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { allowedOf } from '../orgs/org.rules';
import { effectiveScopes, normaliseScopes, refuseMint } from './api-key.rules';

const byRule = sampleOf('rights by the rules', { inCi: 2_000, inChaos: 200_000 });
const throughService = sampleOf('rights through the service', { inCi: 15, inChaos: 1_000 });
const some = fc.subarray([...permissions]);
const asked = fc.array(
  fc.oneof(fc.constantFrom(...permissions), fc.constantFrom('*', 'sites', 'Sites.view', '__proto__', '')),
  {
    maxLength: 8,
  },
);
const isWithin = (scopes: readonly string[], bound: readonly string[]): boolean =>
  scopes.every((scope) => bound.includes(scope));

test('the rules grant only permissions that the creator holds and the organisation allows', () => {
  fc.assert(
    fc.property(
      fc.array(some, { minLength: 1, maxLength: 5 }),
      some,
      asked,
      fc.boolean(),
      (lineage, held, scopes, sandbox) => {
        const targetAllows = allowedOf(lineage.map((allowed) => ({ permissions: allowed })));
        const refusal = refuseMint({ callerMode: 'live', held, targetAllows, scopes, sandbox });
        const isAllowed = lineage.every((allowed) => isWithin([...scopes, 'apikeys.manage'], allowed));
        const fits = isWithin(scopes, permissions) && isWithin(scopes, held) && isAllowed;
        expect(refusal === null).toBe(fits);
        if (refusal === null) expect(new Set(normaliseScopes(scopes))).toEqual(new Set(scopes));
      },
    ),
    { seed: byRule.seed, numRuns: byRule.count },
  );
});

test('by the rules, a key may do what it was given, less what any organisation above it lacks', () => {
  fc.assert(
    fc.property(asked, fc.array(some, { minLength: 1, maxLength: 5 }), (scopes, allowedByEach) => {
      const effective = effectiveScopes({ scopes, allowedByEach });
      expect(effective).toEqual(
        scopes.filter(
          (scope) => isWithin([scope], permissions) && allowedByEach.every((allowed) => isWithin([scope], allowed)),
        ),
      );
    }),
    { seed: byRule.seed, numRuns: byRule.count },
  );
});

describe('through the service', () => {
  let api: KeysApi;
  let root: GoodKey;
  beforeAll(async () => {
    api = await startKeys();
    root = await api.bootstrap();
  });
  afterAll(() => api.close());

  test('a minted or rotated key never holds more than its creator, whatever organisations gain or lose', async () => {
    await fc.assert(
      fc.asyncProperty(some, some, some, some, async (parentHas, childHas, creatorAsks, keyAsks) => {
        const manages = (scopes: string[]) => [...new Set([...scopes, 'apikeys.manage'])];
        const within = (scopes: string[], bound: string[]) => scopes.filter((scope) => bound.includes(scope));
        const parent = await api.createOrg(root.caller, { name: 'parent', permissions: manages(parentHas) });
        const child = await api.createOrg(root.caller, {
          name: 'child',
          parent_id: parent.id,
          permissions: within(childHas, manages(parentHas)),
        });
        const creator = await api.mint(root.caller, {
          org_id: parent.id,
          scopes: within(manages(creatorAsks), manages(parentHas)),
        });
        const body = { name: 'made', org_id: child.id, scopes: keyAsks };
        const answer = await api.call(creator.caller, 'POST', '/v1/api-keys', { body });
        if (answer.status !== 201) {
          expect(refusalOf(answer)).toMatch(/^403 (permission_denied|scope_not_held|org_out_of_scope)$/);
          return;
        }
        const { id, token } = answer.json as { id: string; token: string };
        const isBounded = async (made: string) => {
          const holder = await api.callerOf(creator.token);
          const { scopes } = await api.callerOf(made);
          expect(isWithin(scopes, holder.scopes) && isWithin(scopes, childHas)).toBe(true);
        };
        await isBounded(token);
        await api.call(root.caller, 'PATCH', `/v1/orgs/${parent.id}`, { body: { permissions: parentHas.slice(1) } });
        await isBounded(token);
        const rotated = await api.call(root.caller, 'POST', `/v1/api-keys/${id}/rotate`, { body: {} });
        await api.call(root.caller, 'PATCH', `/v1/orgs/${parent.id}`, { body: { permissions: parentHas } });
        await isBounded((rotated.json as { token: string }).token);
      }),
      { seed: throughService.seed, numRuns: throughService.count },
    );
  });
});
