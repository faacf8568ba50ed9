import type { Preflight } from '@drydock/contracts/platform/preflight';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { givenSite, startApi } from '../../test/hosting-api';

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
});
afterAll(() => api.close());

const refusalOfPreflight = async (siteId: string): Promise<unknown> =>
  ((await api.call('POST', `/v1/sites/${siteId}/app/restart/preflight`)).json as Preflight).refusal;
const restart = (siteId: string) => api.call('POST', `/v1/sites/${siteId}/app/restart`);

describe('while a site’s host does not answer', () => {
  it('other work on the site, and its state, refuse a restart as at any other time', async () => {
    const busy = await givenSite(api, owner);
    const workflow_id = workflowIdOf(await api.call('POST', `/v1/sites/${busy}/backups`, { body: {} }));
    expect((await restart(busy)).json).toMatchObject({ status: 422, code: 'operation_in_progress', workflow_id });
    expect(await refusalOfPreflight(busy)).toMatchObject({ status: 422, code: 'operation_in_progress', workflow_id });
    const suspended = await givenSite(api, owner, { status: 'suspended' });
    expect((await restart(suspended)).json).toMatchObject({ status: 422, code: 'site_suspended' });
    expect(await refusalOfPreflight(suspended)).toMatchObject({ status: 422, code: 'site_suspended' });
  });

  it('nothing is started on a site that could be restarted: 503 names the host', async () => {
    const siteId = await givenSite(api, owner);
    expect((await restart(siteId)).json).toMatchObject({
      status: 503,
      code: 'dependency_unavailable',
      dependency: 'site-host',
    });
    expect(await refusalOfPreflight(siteId)).toMatchObject({
      status: 503,
      code: 'dependency_unavailable',
      dependency: 'site-host',
    });
    expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [siteId])).toEqual([]);
  });
});
