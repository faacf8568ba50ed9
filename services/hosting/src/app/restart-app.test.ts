/** @processes */
import type { ChildProcess } from 'node:child_process';
import { permissions } from '@drydock/contracts/platform/permissions';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { ended, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf } from '@drydock/service/testing/service-api';
import { crashBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import { uuidv7 } from 'uuidv7';
import { type HostingWorld, makeSite, openWorld } from '../../test/hosting-world';
import { processOf, putApp } from '../../test/site-app';

describe.each(crashBackends())('restarting an application, with the queue on %s', (backend) => {
  let world: HostingWorld;
  let worker: ChildProcess;
  let siteId: string;
  let neighbourId: string;
  beforeAll(async () => {
    world = await openWorld(backend, callerOf());
    worker = world.spawnWorker();
    [siteId, neighbourId] = await Promise.all([makeSite(world), makeSite(world, 'Neighbour')]);
    await Promise.all([putApp(world, siteId), putApp(world, neighbourId)]);
  });
  afterAll(() => world.close());

  const appOf = async (id: string) => (await world.api.call('GET', `/v1/sites/${id}/app`)).json;
  const restart = (id: string, options: object = {}) => world.api.call('POST', `/v1/sites/${id}/app/restart`, options);
  const restartOf = async (id: string): Promise<string> =>
    `/v1/sites/${id}/workflows/${await workflowOf(world.api, id, 'restart_app')}`;

  it('answers 200 once the host has confirmed; the next request is answered by a fresh process, the neighbour keeps its own', async () => {
    const [before, beside] = [await processOf(world, siteId), await processOf(world, neighbourId)];
    expect(await appOf(siteId)).toEqual({
      site_id: siteId,
      has_app: true,
      generation: 1,
      last_restart_at: null,
      in_progress: false,
    });
    expect((await world.api.call('POST', `/v1/sites/${siteId}/app/restart/preflight`)).json).toMatchObject({
      would: expect.stringMatching(/^End the application of /),
      ...{ resource: `/v1/sites/${siteId}`, point: null, refusal: null, findings: [] },
    });
    expect(await processOf(world, siteId)).toBe(before);
    const answer = await restart(siteId);
    expect([answer.status, answer.json]).toEqual([
      200,
      { site_id: siteId, restarted_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/), takes_effect: 'next_request' },
    ]);
    expect(await processOf(world, siteId)).not.toBe(before);
    expect(await processOf(world, neighbourId)).toBe(beside);
    expect(await ended(world, await restartOf(siteId))).toMatchObject({ status: 'succeeded' });
    const { restarted_at } = answer.json as { restarted_at: string };
    expect(await appOf(siteId)).toMatchObject({
      site_id: siteId,
      has_app: true,
      generation: 2,
      last_restart_at: restarted_at,
    });
    expect(
      (await auditedOf(world.api, `/v1/sites/${siteId}`)).filter((action) => action === 'app.restart'),
    ).toHaveLength(1);
  });

  it('is possible again as soon as the surface says that nothing is in progress', async () => {
    for (const time of [1, 2, 3]) {
      expect([time, (await restart(siteId)).status]).toEqual([time, 200]);
      await until(async () => !((await appOf(siteId)) as { in_progress: boolean }).in_progress, { everyMs: 1 });
    }
    await ended(world, await restartOf(siteId));
  });

  it('replays the first answer for the same Idempotency-Key and restarts once', async () => {
    const first = await restart(siteId, { idempotencyKey: 'once' });
    await ended(world, await restartOf(siteId));
    const pid = await processOf(world, siteId);
    const again = await restart(siteId, { idempotencyKey: 'once' });
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([200, first.text, 'true']);
    expect(await processOf(world, siteId)).toBe(pid);
  });

  it('the workflow tells that an application has not come back; once mended, it can be restarted', async () => {
    const id = await makeSite(world, 'Broken');
    await putApp(world, id, 'process.exit(3)');
    expect((await restart(id)).status).toBe(200);
    expect(await ended(world, await restartOf(id))).toMatchObject({
      status: 'failed',
      error: { code: 'app_not_started' },
    });
    await putApp(world, id);
    expect((await restart(id)).status).toBe(200);
    expect(await ended(world, await restartOf(id))).toMatchObject({ status: 'succeeded' });
  });

  it('refuses a site without an application, a suspended site, and before all else a site with other work on it', async () => {
    const bare = await makeSite(world, 'Bare');
    expect((await restart(bare)).json).toMatchObject({ status: 422, code: 'no_app' });
    expect(await appOf(bare)).toEqual({
      site_id: bare,
      has_app: false,
      generation: 0,
      last_restart_at: null,
      in_progress: expect.any(Boolean),
    });
    await putApp(world, bare);
    await world.api.rows("UPDATE sites SET status = 'suspended' WHERE id = $1", [bare]);
    expect((await restart(bare)).json).toMatchObject({ status: 422, code: 'site_suspended' });
    worker.kill('SIGSTOP');
    try {
      const backup = await world.api.call('POST', `/v1/sites/${bare}/backups`, { body: {} });
      const workflow_id = workflowIdOf(backup);
      expect((await restart(bare)).json).toMatchObject({ status: 422, code: 'operation_in_progress', workflow_id });
    } finally {
      worker.kill('SIGCONT');
    }
  });

  it('another organisation, the other mode and a malformed id give one 404; a missing permission gives 403 before', async () => {
    const strangers = [callerOf(), { ...world.caller, mode: 'sandbox' as const }];
    const answers = await Promise.all([
      ...strangers.map((caller) => restart(siteId, { caller })),
      restart(uuidv7()),
      restart('no-id'),
      ...strangers.map((caller) => world.api.call('GET', `/v1/sites/${siteId}/app`, { caller })),
    ]);
    const [first, ...others] = answers.map(withoutRequestId);
    expect(first).toMatchObject({ status: 404, body: { code: 'site_not_found' } });
    expect(others).toEqual(others.map(() => first));
    const scopes = permissions.filter((scope) => scope !== 'hosting.deploy.manage');
    expect((await restart(uuidv7(), { caller: { ...world.caller, scopes } })).json).toMatchObject({
      status: 403,
      code: 'permission_denied',
    });
  });

  it('without a worker in time it answers 503, and nothing is restarted afterwards', async () => {
    await world.endWorkers();
    const pid = await processOf(world, siteId);
    const answering = restart(siteId);
    // Moves the deadline of the start to now, because the test would otherwise wait ten seconds.
    const pastStart =
      "UPDATE workflow SET start_by = now() WHERE kind = 'restart_app' AND status = 'queued' RETURNING id";
    await until(async () => (await world.api.rows(pastStart)).length === 1, { what: 'the accepted restart' });
    const answer = await answering;
    expect([answer.status, answer.json, answer.headers['retry-after']]).toMatchObject([
      503,
      { code: 'dependency_unavailable', dependency: 'hosting-worker' },
      '5',
    ]);
    worker = world.spawnWorker();
    await until(async () => (await restart(neighbourId)).status === 200, { what: 'a worker' });
    expect(await processOf(world, siteId)).toBe(pid);
  });
});
