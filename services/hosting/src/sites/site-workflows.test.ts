import { auditedOf } from '@drydock/service/testing/audit-log';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { givenSite, startApi } from '../../test/hosting-api';

const staff = callerOf();
const customer = { ...staff, scopes: staff.scopes.filter((scope) => scope !== 'platform.staff') };
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(staff);
});
afterAll(() => api.close());

/** Makes a site with a backup in progress. `location` is the path of the backup's workflow. */
async function givenWorkflow(): Promise<{ siteId: string; location: string }> {
  const siteId = await givenSite(api, staff);
  const answer = await api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
  return { siteId, location: String(answer.headers['location']) };
}
const park = (siteId: string) =>
  api.rows(`UPDATE workflow SET status = 'needs_attention', error = '{"code":"step_failed"}' WHERE subject_id = $1`, [
    siteId,
  ]);
const finish = (siteId: string) =>
  api.rows(
    "UPDATE workflow SET status = 'succeeded', finished_at = now(), version = version + 1 WHERE subject_id = $1",
    [siteId],
  );

it.each(['retry', 'abandon'])('lets staff %s a workflow that waits for them, once, and notes it', async (verb) => {
  const { siteId, location } = await givenWorkflow();
  expect((await api.call('POST', `${location}/${verb}`)).json).toMatchObject({ code: 'workflow_not_waiting' });
  await park(siteId);
  expect((await api.call('POST', `${location}/${verb}`, { caller: customer })).status).toBe(403);
  const decided = await api.call('POST', `${location}/${verb}`);
  expect([decided.status, decided.json]).toMatchObject([202, { status: 'queued' }]);
  expect((await api.call('POST', `${location}/${verb}`)).json).toMatchObject({ code: 'workflow_not_waiting' });
  expect((await auditedOf(api, `/v1/sites/${siteId}`)).filter((action) => action === `workflow.${verb}`)).toHaveLength(
    1,
  );
});

it("lists a site's workflows, newest first, and no other site's", async () => {
  const { siteId, location } = await givenWorkflow();
  await givenWorkflow();
  await finish(siteId);
  const second = await api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const listed = (await api.call('GET', `/v1/sites/${siteId}/workflows`)).json as { data: Array<{ id: string }> };
  expect(listed.data.map(({ id }) => id)).toEqual(
    [second.headers['location'], location].map((path) => String(path).split('/').at(-1)),
  );
});

it("answers another site's workflow as one that does not exist", async () => {
  const { siteId } = await givenWorkflow();
  const { location } = await givenWorkflow();
  const foreign = await api.call('GET', `/v1/sites/${siteId}/workflows/${location.split('/').at(-1)}`);
  const missing = await api.call('GET', `/v1/sites/${siteId}/workflows/${uuidv7()}`);
  expect(refusalOf(foreign)).toBe('404 workflow_not_found');
  expect(withoutRequestId(missing)).toEqual(withoutRequestId(foreign));
});

it('streams what is new to the watcher and ends with the workflow', async () => {
  const { siteId, location } = await givenWorkflow();
  await finish(siteId);
  const stream = await api.call('GET', `${location}/events`);
  expect(stream.headers['content-type']).toBe('text/event-stream');
  expect(stream.text).toMatch(/^id: 2\nevent: workflow\ndata: \{.*"status":"succeeded".*\}\n\n$/);
  // An EventSource does not connect again after 204.
  const resumed = await api.call('GET', `${location}/events`, { headers: { 'last-event-id': '2' } });
  expect([resumed.status, resumed.text]).toEqual([204, '']);
  expect((await api.call('GET', `${location}/events`, { headers: { 'last-event-id': '1' } })).status).toBe(200);
});

it('keeps the workflow of a deleted site readable for its organisation alone', async () => {
  const { siteId, location } = await givenWorkflow();
  await finish(siteId);
  await api.rows('DELETE FROM sites WHERE id = $1', [siteId]);
  expect((await api.call('GET', location)).json).toMatchObject({ status: 'succeeded' });
  const list = `/v1/sites/${siteId}/workflows`;
  expect((await api.call('GET', list)).json).toMatchObject({ data: [{ status: 'succeeded' }] });
  for (const path of [list, location])
    expect((await api.call('GET', path, { caller: callerOf() })).json).toMatchObject({ code: 'site_not_found' });
});
