import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi, startServiceApi } from '@drydock/service/testing/service-api';
import { compute, rangeSettings } from '../../test/compute-api';
import { givenServer } from '../../test/given-server';
import { type HetznerProject, openHetznerProject } from '../../test/hetzner-project';

const staff = callerOf();
let project: HetznerProject;
let api: ServiceApi;
beforeAll(async () => {
  project = await openHetznerProject();
  const targets = rangeSettings({ targets: { fsn: project.target() } });
  api = await startServiceApi(compute, staff, { ...targets, SNAPSHOTS_PER_SERVER: '2' });
});
afterAll(async () => {
  await api.close();
  await project.close();
});

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

it('a server gets as many snapshots as a server may have; those of other servers do not count', async () => {
  const [machineId, neighbour] = [await project.makeMachine(), await project.makeMachine()];
  const serverId = await givenServer(api, staff, { machineId });
  const take = () => api.call('POST', `/v1/compute/servers/${serverId}/snapshots`, { body: {} });
  for (const id of [machineId, neighbour, machineId]) await project.makeSnapshot(id);
  const refused = await take();
  expect([refusalOf(refused), refused.json]).toMatchObject(['422 quota_exceeded', { limit: 2, used: 2 }]);
  expect(await api.rows('SELECT kind FROM workflow WHERE subject_id = $1', [serverId])).toEqual([]);
  await project.removeSnapshot(String((await project.snapshotsOf(machineId))[0]));
  expect((await take()).status).toBe(202);
  // Work in progress is reported before any other refusal.
  expect(refusalOf(await take())).toBe('422 operation_in_progress');
});
