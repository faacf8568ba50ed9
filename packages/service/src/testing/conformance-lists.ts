import assert from 'node:assert/strict';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { parametersOf } from './ask-endpoint';
import { ask, assertRefused, assertSucceeded, hasPages, type Rule } from './conformance-rule';
import { filterCases, type Item, wrongFor, wrongMoments } from './filter-cases';
import { callerOf } from './service-api';

export const listRules: readonly Rule[] = [
  {
    name: 'it pages as every list does',
    appliesTo: hasPages,
    check: async (world, endpoint, things) => {
      for (const limit of ['0', '-1', '1.5', '1e2', 'x', '', '%201', '9'.repeat(16)]) {
        assertRefused(
          await ask(world, endpoint, things, { search: `?limit=${limit}` }),
          '422 invalid_limit',
          `limit ${limit}`,
        );
      }
      for (const cursor of ['', 'x', 'x.y', 'a'.repeat(1_000)]) {
        assertRefused(
          await ask(world, endpoint, things, { search: `?cursor=${cursor}` }),
          '422 invalid_cursor',
          `cursor ${cursor}`,
        );
      }
      assertRefused(
        await ask(world, endpoint, things, { search: '?limit=1&limit=1' }),
        '422 invalid_request',
        'limit twice',
      );
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
    name: 'a filter gives exactly the items that meet it, also on later pages, and refuses malformed values',
    appliesTo: hasFilters,
    check: async (world, endpoint) => {
      const caller = (await world.newOwner?.()) ?? callerOf();
      const { query } = endpoint;
      const things = await world.makeThings(caller, endpoint);
      if (parametersOf(endpoint).length === 0)
        for (let more = 0; more < 2; more += 1) await world.makeThings(caller, endpoint);
      const list = async (search: string): Promise<Item[]> => {
        const answer = await ask(world, endpoint, things, { search, caller });
        assertSucceeded(endpoint, answer);
        const { data, backups, page } = answer.json as {
          data?: Item[];
          backups?: Item[];
          page: { next_cursor: string | null };
        };
        const items = data ?? backups ?? [];
        return page.next_cursor === null
          ? items
          : [...items, ...(await list(`${search.split('&cursor=')[0]}&cursor=${page.next_cursor}`))];
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
          const refused = await ask(world, endpoint, things, {
            search: `?${name}=${encodeURIComponent(wrong)}`,
            caller,
          });
          assertRefused(refused, '422 invalid_request', `${name}=${wrong}`);
          assert.ok(refused.text.includes(`"pointer":"?${name}"`), refused.text);
        }
      }
      if (all.length === 1) return;
      const { page } = (await ask(world, endpoint, things, { search: '?limit=1', caller })).json as {
        page: { next_cursor: string };
      };
      const [name = ''] = Object.keys(filterCases(all)).filter(
        (filter) => query !== undefined && filter in query.shape,
      );
      const [[value] = ['']] = filterCases(all)[name] ?? [];
      const search = `?${name}=${encodeURIComponent(value)}&cursor=${page.next_cursor}`;
      assertRefused(
        await ask(world, endpoint, things, { search, caller }),
        '422 invalid_cursor',
        'the cursor of a list without this filter',
      );
    },
  },
];

function hasFilters({ query }: EndpointDefinition): boolean {
  return query !== undefined && ['status', 'kind', 'created_after', 'text'].some((name) => name in query.shape);
}
