import type { Preflight } from '@drydock/contracts/platform/preflight';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { impatient, startApi } from '../../test/compute-api';
import { givenServer } from '../../test/given-server';
import { type HetznerProject, openHetznerProject } from '../../test/hetzner-project';

const owner = callerOf();
let project: HetznerProject;
let api: ServiceApi;
beforeAll(async () => {
  project = await openHetznerProject();
  api = await startApi(owner, { targets: { fsn: project.target(), away: project.target(impatient) } });
});
afterAll(async () => {
  await api.close();
  await project.close();
});

const path = (serverId: string, snapshotId: string): string =>
  `/v1/compute/servers/${serverId}/snapshots/${snapshotId}`;
const rollBack = (serverId: string, snapshotId: string, options: object = {}) =>
  api.call('POST', path(serverId, snapshotId), options);

async function givenSnapshot(
  deployTarget = 'fsn',
): Promise<{ serverId: string; machineId: string; snapshotId: string }> {
  const machineId = await project.makeMachine();
  const snapshotId = await project.makeSnapshot(machineId);
  return { machineId, snapshotId, serverId: await givenServer(api, owner, { machineId, deployTarget }) };
}
/** Returns the code of the refusal. The call and its preflight must agree. */
async function refusedAs(serverId: string, snapshotId: string): Promise<unknown> {
  const preflight = (await api.call('POST', `${path(serverId, snapshotId)}/preflight`)).json as Preflight;
  const answer = await rollBack(serverId, snapshotId);
  const { request_id: _one, ...told } = answer.json as Record<string, unknown>;
  expect({ ...preflight.refusal, request_id: undefined }).toEqual({ ...told, request_id: undefined });
  return told['code'];
}

it('answers 202 with the server as it is during a rollback, and writes the audit entry at once', async () => {
  const { serverId, snapshotId } = await givenSnapshot();
  const answer = await rollBack(serverId, snapshotId);
  expect([answer.status, answer.json]).toMatchObject([
    202,
    { id: serverId, status: 'active', operable: false, power_state: 'rebooting', message: '' },
  ]);
  expect(answer.headers).toMatchObject({
    'retry-after': '1',
    location: expect.stringMatching(new RegExp(`^/v1/compute/servers/${serverId}/workflows/`)),
  });
  expect((await api.call('GET', String(answer.headers['location']))).json).toMatchObject({
    kind: 'roll_back_server',
    status: 'queued',
  });
  expect(await api.rows('SELECT action FROM audit_outbox')).toEqual([{ action: 'server.roll_back' }]);
  expect(await project.ledger('rebuild_server')).toEqual([]);
});

it('accepts exactly one of five rollbacks at once', async () => {
  const { serverId, snapshotId } = await givenSnapshot();
  const answers = await Promise.all(Array.from({ length: 5 }, () => rollBack(serverId, snapshotId)));
  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted).toHaveLength(1);
  const workflowId = workflowIdOf(accepted[0]);
  for (const refused of answers.filter((answer) => !accepted.includes(answer)))
    expect([refused.status, refused.json]).toMatchObject([
      422,
      { code: 'operation_in_progress', workflow_id: workflowId },
    ]);
});

it('reports an operation in progress before any other refusal, without asking the provider', async () => {
  const { serverId, snapshotId } = await givenSnapshot();
  await rollBack(serverId, snapshotId);
  const before = (await project.calls()).length;
  for (const named of ['never-was', '%20', 'a'.repeat(300)]) {
    expect((await rollBack(serverId, named)).json).toMatchObject({ code: 'operation_in_progress' });
  }
  expect((await project.calls()).length).toBe(before);
  await api.rows(
    'UPDATE workflow SET status = \'needs_attention\', error = \'{"code":"step_failed"}\' WHERE subject_id = $1',
    [serverId],
  );
  expect((await rollBack(serverId, snapshotId)).json).toMatchObject({
    code: 'needs_attention',
    workflow_id: expect.any(String),
  });
});

it("answers the same for another machine's snapshot, for the id of an image and for a missing snapshot", async () => {
  const { serverId } = await givenSnapshot();
  const { snapshotId: neighbours } = await givenSnapshot();
  const answers = [];
  for (const snapshotId of [
    neighbours,
    '999999',
    'pre-upgrade',
    '161547269',
    '..',
    'a%2Fb',
    'x'.repeat(200),
    '%F0%9F%92%A9',
  ]) {
    const { status, json } = await rollBack(serverId, snapshotId);
    answers.push(JSON.stringify([status, { ...(json as object), request_id: '' }]));
  }
  expect(new Set(answers).size).toBeLessThanOrEqual(2); // `..` does not reach the route
  expect(JSON.parse(answers[0] ?? '')).toMatchObject([422, { code: 'snapshot_not_on_server' }]);
});

it('answers a malformed snapshot id like a missing snapshot, and a missing server first', async () => {
  const { serverId } = await givenSnapshot();
  for (const named of ['%20', '..%5cx', 'a'.repeat(300)]) {
    expect((await rollBack(uuidv7(), named)).json).toMatchObject({ status: 404, code: 'server_not_found' });
    expect(await refusedAs(serverId, named)).toBe('snapshot_not_on_server');
    expect((await api.call('DELETE', path(serverId, named))).json).toMatchObject({ code: 'snapshot_not_on_server' });
  }
});

it('refuses a snapshot that is not ready or does not fit, and a machine that is protected, inoperable or locked', async () => {
  const { serverId, machineId, snapshotId } = await givenSnapshot();
  const change = (what: 'servers' | 'images', id: string, body: object) =>
    project.admin('PATCH', `/${what}/${id}`, body);
  await change('images', snapshotId, { status: 'creating' });
  expect(await refusedAs(serverId, snapshotId)).toBe('snapshot_not_ready');
  await change('images', snapshotId, { status: 'unavailable' });
  expect(await refusedAs(serverId, snapshotId)).toBe('snapshot_not_ready');
  await change('images', snapshotId, { status: 'available', architecture: 'arm' });
  expect(await refusedAs(serverId, snapshotId)).toBe('snapshot_incompatible');
  await change('images', snapshotId, { architecture: 'x86', diskSize: 500 });
  expect(await refusedAs(serverId, snapshotId)).toBe('snapshot_incompatible');
  await change('servers', machineId, { isProtected: true });
  expect(await refusedAs(serverId, snapshotId)).toBe('rebuild_protected');
  await api.rows('UPDATE servers SET operable = false WHERE id = $1', [serverId]);
  expect(await refusedAs(serverId, snapshotId)).toBe('server_not_operable');
  await change('servers', machineId, { isHiddenLocked: true });
  expect(await refusedAs(serverId, snapshotId)).toBe('operation_in_progress');
  expect(await project.ledger('rebuild_server')).toEqual([]);
  expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [serverId])).toEqual([]);
});

it('refuses a machine that its provider no longer knows', async () => {
  const { serverId, machineId, snapshotId } = await givenSnapshot();
  await project.admin('DELETE', `/servers/${machineId}`);
  expect(await refusedAs(serverId, snapshotId)).toBe('server_not_operable');
});

it('answers 503 and has started nothing when the provider does not answer', async () => {
  const { serverId, snapshotId } = await givenSnapshot('away');
  await project.fault({ path: '/v1/', times: 1_000, answer: { kind: 'fixed', status: 503 } });
  const answer = await rollBack(serverId, snapshotId);
  await project.admin('DELETE', '/faults');
  expect([answer.status, answer.json]).toMatchObject([503, { code: 'dependency_unavailable', dependency: 'provider' }]);
  expect(answer.text).not.toMatch(/hetzner|http/i);
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [serverId])).toEqual([]);
});

it('the preflight reports what would be lost and how old the snapshot is, and changes nothing', async () => {
  const { serverId, snapshotId } = await givenSnapshot();
  await project.admin('PATCH', `/images/${snapshotId}`, { created: Date.now() - 30 * 86_400_000 });
  const answer = await api.call('POST', `${path(serverId, snapshotId)}/preflight`);
  expect([answer.status, answer.json]).toMatchObject([
    200,
    {
      resource: `/v1/compute/servers/${serverId}`,
      refusal: null,
      undo: false,
      space: { needed_bytes: expect.any(Number), free_bytes: expect.any(Number) },
      point: { id: snapshotId, age_seconds: expect.any(Number) },
    },
  ]);
  const { findings } = answer.json as Preflight;
  expect(findings.map(({ level, code }) => `${level} ${code}`)).toEqual([
    'WARNING old_snapshot',
    'WARNING server_running',
    'WARNING root_password_changed',
    'INFO take_a_snapshot',
  ]);
  expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [serverId])).toEqual([]);
});

it('answers a server that is not the caller’s as one that does not exist, and lists its snapshots to nobody else', async () => {
  const { serverId, snapshotId } = await givenSnapshot();
  for (const caller of [callerOf(), { ...owner, mode: 'sandbox' as const }]) {
    const [foreign, missing] = [
      await rollBack(serverId, snapshotId, { caller }),
      await rollBack(uuidv7(), snapshotId, { caller }),
    ];
    expect(refusalOf(foreign)).toBe('404 server_not_found');
    expect(withoutRequestId(missing)).toEqual(withoutRequestId(foreign));
    expect((await api.call('GET', `/v1/compute/servers/${serverId}/snapshots`, { caller })).status).toBe(404);
  }
});
