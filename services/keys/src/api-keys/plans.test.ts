import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { type KeysDatabase, openDatabase } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import { oneOrgQuery, subtreeQuery, verifySql } from './api-key.store';

const keyCount = 100_000;

let api: KeysApi;
let root: GoodKey;
let database: KeysDatabase;
/** An organisation with few keys, in a tree of organisations with very many keys. */
let smallOrgId: string;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
  database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  const { orgId } = root.caller;
  await api.rows(
    `INSERT INTO orgs (id, parent_id, path, name, permissions, created_at)
     SELECT id, $1::uuid, ARRAY[$1::uuid, id], 'many', '{}', now() FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 500)) o`,
    [orgId],
  );
  await api.rows(
    `INSERT INTO api_keys (id, org_id, name, prefix, secret_hash, pepper_version, scopes, mode, created_at)
     SELECT gen_random_uuid(), o.ids[1 + n % 500], 'n', lpad(n::text, 12, '0'), sha256('x'), 1, '{}',
       (CASE WHEN n % 1000 = 0 THEN 'sandbox' ELSE 'live' END)::mode, now()
     FROM generate_series(1, $2::int) n, (SELECT array_agg(id) AS ids FROM orgs WHERE parent_id = $1) o`,
    [orgId, keyCount],
  );
  await api.rows(
    `INSERT INTO api_key_listings (key_id, org_id, mode) SELECT k.id, unnest(o.path), k.mode FROM api_keys k JOIN orgs o ON o.id = k.org_id
     ON CONFLICT DO NOTHING`,
  );
  smallOrgId = (await api.createOrg(root.caller, { name: 'small', permissions: ['apikeys.manage'] })).id;
  await api.mint(root.caller, { org_id: smallOrgId });
  await api.rows('ANALYZE');
}, 120_000);
afterAll(async () => {
  await database.close();
  await api.close();
});

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Plan[];
}
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

async function nodesRun(query: Prisma.Sql): Promise<Plan[]> {
  const [row] = await database.pool.$queryRaw<Array<{ 'QUERY PLAN': Array<{ Plan: Plan }> }>>(
    Prisma.sql`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${query}`,
  );
  const plan = row?.['QUERY PLAN'][0]?.Plan;
  return plan === undefined ? [] : nodesOf(plan);
}

const page = { after: null, take: 51 };
/**
 * The most pages of the database that a query may read. A query looks up its rows one by one, each through an index of
 * three or four levels. A scan of an index would read more than 1000 pages.
 */
const pagesReadMax = 400;
test.each([
  ['the first page of the whole subtree', () => subtreeQuery(root.caller, page)],
  ['a page in its midst', () => subtreeQuery(root.caller, { ...page, after: '80000000-0000-4000-8000-000000000000' })],
  ['the few sandbox keys of it', () => subtreeQuery({ ...root.caller, mode: 'sandbox' }, page)],
  ['a small organisation from its own sight', () => subtreeQuery({ orgId: smallOrgId, mode: 'live' }, page)],
  ['one small organisation', () => oneOrgQuery(root.caller, smallOrgId, page)],
  ['one organisation that is not there', () => oneOrgQuery(root.caller, uuidv7(), page)],
  ['one organisation of hundreds of keys', () => oneOrgQuery(root.caller, root.caller.orgId, page)],
  ['a verification', () => new Prisma.Sql(verifySql.split('$1'), ['000000000042'])],
])('with 100,000 keys %s reads by index, and hardly more rows than it shows', async (_what, query) => {
  const nodes = await nodesRun(query());
  expect(nodes.length).toBeGreaterThan(0);
  expect(
    nodes
      .filter((node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0)
      .map((node) => node['Relation Name']),
  ).toEqual([]);
  const rowsRead = nodes
    .filter((node) => node['Relation Name'] !== undefined)
    .map((node) => node['Actual Rows'] * node['Actual Loops']);
  expect(Math.max(...rowsRead)).toBeLessThanOrEqual(page.take);
  const [top] = nodes;
  expect((top?.['Shared Hit Blocks'] ?? 0) + (top?.['Shared Read Blocks'] ?? 0)).toBeLessThan(pagesReadMax);
});
