/**
 * Some requests of this suite wait for a worker until their time limit.
 *
 * @tier long
 */
import type { ServerSnapshot } from '@drydock/contracts/compute/compute-snapshots';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { givenWorkflow } from '@drydock/service/testing/conformance-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { startApi } from '../test/compute-api';
import { givenServer } from '../test/given-server';
import { type HetznerProject, openHetznerProject } from '../test/hetzner-project';
import { serverSubject } from './servers/server.types';

const owner = callerOf();
let project: HetznerProject;
let api: ServiceApi;
beforeAll(async () => {
  project = await openHetznerProject();
  api = await startApi(owner, { targets: { fsn: project.target() } });
});
afterAll(async () => {
  await api.close();
  await project.close();
});

async function givenSnapshot() {
  const machineId = await project.makeMachine();
  const snapshotId = await project.makeSnapshot(machineId);
  const serverId = await givenServer(api, owner, { machineId });
  return { machineId, snapshotId, serverId, snapshots: `/v1/compute/servers/${serverId}/snapshots` };
}
const unfinished = (serverId: string) =>
  api.rows("SELECT kind FROM workflow WHERE subject_id = $1 AND status NOT IN ('succeeded', 'failed')", [serverId]);

it('a snapshot is accepted without its number, and stays queued', async () => {
  const { serverId, snapshots } = await givenSnapshot();
  const answer = await api.call('POST', snapshots, { body: { description: 'mine' } });
  expect([answer.status, answer.json as ServerSnapshot]).toMatchObject([
    202,
    { id: '', description: 'mine', status: 'creating' },
  ]);
  expect((await api.call('GET', String(answer.headers['location']))).json).toMatchObject({ status: 'queued' });
  expect(await unfinished(serverId)).toEqual([{ kind: 'take_snapshot' }]);
});

it('a deletion answers 503, names the missing worker, and is not carried out later', async () => {
  const { machineId, serverId, snapshotId, snapshots } = await givenSnapshot();
  const answer = await api.call('DELETE', `${snapshots}/${snapshotId}`);
  expect([answer.status, answer.json]).toMatchObject([
    503,
    { code: 'dependency_unavailable', dependency: 'compute-worker' },
  ]);
  expect(await unfinished(serverId)).toEqual([]);
  expect(await project.snapshotsOf(machineId)).toEqual([Number(snapshotId)]);
});

it('abandoning a workflow is accepted, and the workflow is queued until a worker ends it', async () => {
  const { serverId } = await givenSnapshot();
  const subject = serverSubject(serverId);
  const id = await givenWorkflow(api, owner, { kind: 'take_snapshot', subject, input: {}, status: 'needs_attention' });
  const answer = await api.call('POST', `/v1/compute/servers/${serverId}/workflows/${id}/abandon`);
  expect([answer.status, answer.json as WorkflowView]).toMatchObject([
    202,
    { id, status: 'queued', error: { code: 'abandoned' } },
  ]);
});
