import type { Quota } from '@drydock/contracts/platform/quotas';
import { auditedOf } from '@drydock/service/testing/audit-log';
import type { ServiceAnswer } from '@drydock/service/testing/call-service';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { givenSite, startApi } from '../../test/hosting-api';

const staff = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(staff, { SITES_PER_ORGANISATION: '3' });
});
afterAll(() => api.close());

type Caller = typeof staff;
const customer = (): Caller => {
  const caller = callerOf();
  return { ...caller, scopes: caller.scopes.filter((scope) => scope !== 'platform.staff') };
};
const create = (caller: Caller): Promise<ServiceAnswer> =>
  api.call('POST', '/v1/sites', { caller, body: { name: 'Shop', primary_domain: `${uuidv7()}.example.com` } });
const read = async (caller: Caller) => (await api.call('GET', '/v1/sites/quota', { caller })).json as Quota;
const set = (orgId: string, limit: number | null, caller: Caller = staff) =>
  api.call('PUT', `/v1/sites/quota/${orgId}`, { caller, body: { limit } });

it('an organisation gets as many sites as it may have and no more, however many it asks for at once', async () => {
  const caller = customer();
  const answers = await Promise.all(Array.from({ length: 5 }, () => create(caller)));
  expect(answers.map(refusalOf).sort()).toEqual(['202 ', '202 ', '202 ', '422 quota_exceeded', '422 quota_exceeded']);
  for (const { status, json } of answers.filter((answer) => answer.status !== 202))
    expect([status, json]).toMatchObject([422, { code: 'quota_exceeded', limit: 3, used: 3 }]);
  expect(await read(caller)).toEqual({ org_id: caller.orgId, limit: 3, used: 3 });
  expect((await create(customer())).status).toBe(202);
});

it('failed sites do not count, and the sandbox is counted separately', async () => {
  const caller = customer();
  for (const status of ['failed', 'active', 'suspended', 'active']) await givenSite(api, caller, { status });
  expect(await read(caller)).toMatchObject({ used: 3 });
  expect((await create({ ...caller, mode: 'sandbox' })).status).toBe(202);
  expect(refusalOf(await create(caller))).toBe('422 quota_exceeded');
});

it('staff raise, lower and reset the quota of an organisation, with audit entries', async () => {
  const caller = customer();
  for (let number = 0; number < 3; number += 1) await givenSite(api, caller);
  expect((await set(caller.orgId, 4)).json).toEqual({ org_id: caller.orgId, limit: 4, used: 3 });
  expect((await create(caller)).status).toBe(202);
  expect((await set(caller.orgId, 0)).json).toMatchObject({ limit: 0, used: 4 });
  expect(refusalOf(await create(caller))).toBe('422 quota_exceeded');
  expect((await set(caller.orgId, null)).json).toMatchObject({ limit: 3 });
  expect(await auditedOf(api, `/v1/sites/quota/${caller.orgId}`)).toEqual(['quota.set', 'quota.set', 'quota.set']);
  // The entries have the organisation's id, so that the organisation sees the entries and the events that are made of
  // them.
  const ofOrg = "SELECT 1 FROM audit_outbox WHERE action = 'quota.set' AND org_id = $1::uuid";
  expect(await api.rows(ofOrg, [caller.orgId])).toHaveLength(3);
});

it('a customer cannot set a quota, not even its own', async () => {
  const caller = customer();
  expect(refusalOf(await set(caller.orgId, 1_000, caller))).toBe('403 permission_denied');
  expect(await read(caller)).toMatchObject({ limit: 3 });
});
