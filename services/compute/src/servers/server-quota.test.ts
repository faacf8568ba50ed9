import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { startApi, targetConfig } from '../../test/compute-api';
import { givenServer } from '../../test/given-server';

const staff = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(staff, { targets: { fsn: targetConfig('http://127.0.0.1:9', 'token') } });
});
afterAll(() => api.close());

it('an organisation gets as many servers as staff let it have; what was terminated or failed does not count', async () => {
  const caller = callerOf();
  const body = { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' };
  const order = () => api.call('POST', '/v1/compute/servers', { caller, body });
  const [terminated, failed] = [await givenServer(api, caller), await givenServer(api, caller)];
  await api.rows("UPDATE servers SET status = 'terminated' WHERE id = $1", [terminated]);
  await api.rows("UPDATE servers SET status = 'failed', message = 'It failed.' WHERE id = $1", [failed]);
  await givenServer(api, caller);
  const set = await api.call('PUT', `/v1/compute/servers/quota/${caller.orgId}`, { body: { limit: 2 } });
  expect([set.status, set.json]).toMatchObject([200, { limit: 2, used: 1 }]);
  const answers = await Promise.all([order(), order()]);
  expect(answers.map(refusalOf).sort()).toEqual(['202 ', '422 quota_exceeded']);
  expect((await api.call('GET', '/v1/compute/servers/quota', { caller })).json).toMatchObject({ limit: 2, used: 2 });
});
