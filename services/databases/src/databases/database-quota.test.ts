import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { givenDatabase, startApi } from '../../test/databases-api';

const staff = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(staff);
});
afterAll(() => api.close());

it('an organisation gets as many databases as staff let it have; what was deleted or failed does not count', async () => {
  const caller = callerOf();
  const body = { label: 'Shop', engine: 'postgres', engine_version: '16', size: 'small' };
  const create = () => api.call('POST', '/v1/databases', { caller, body });
  for (const status of ['available', 'deleted', 'failed']) await givenDatabase(api, caller, { status });
  const set = await api.call('PUT', `/v1/databases/quota/${caller.orgId}`, { body: { limit: 2 } });
  expect([set.status, set.json]).toMatchObject([200, { limit: 2, used: 1 }]);
  expect((await create()).status).toBe(202);
  expect(refusalOf(await create())).toBe('422 quota_exceeded');
  expect((await api.call('GET', '/v1/databases/quota', { caller })).json).toMatchObject({ limit: 2, used: 2 });
});
