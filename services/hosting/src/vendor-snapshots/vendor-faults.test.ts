/**
 * Makes the vendor fail during requests. Some faults last as long as a request waits.
 *
 * @tier long
 * @processes
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ended } from '@drydock/service/testing/follow-workflow';
import { putBack, takeMoment } from '@drydock/service/testing/older-database';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import { uuidv7 } from 'uuidv7';
import type { HostingWorld } from '../../test/hosting-world';
import { vendorContent } from '../../test/vendor';
import {
  atRest,
  auditOf,
  donesOf,
  makeVendorSite,
  openVendorWorld,
  restore,
  snapshotsPath,
  surfaceOf,
  type VendorWorld,
} from '../../test/vendor-world';

const [backend = 'postgres'] = serviceBackends();
let world: VendorWorld;
let worker: ChildProcess;
beforeAll(async () => {
  world = await openVendorWorld(backend, callerOf());
  worker = world.spawnWorker();
});
afterEach(() => world.vendor.clearFaults());
afterAll(() => world.close());

const restoreWeb = async (siteId: string) =>
  restore(world, siteId, { scope: 'web', timestamp: (await surfaceOf(world, siteId)).web?.points[0]?.timestamp ?? '' });
const over = async (siteId: string, caller = world.caller): Promise<{ status: string; code: string | undefined }> => {
  const { status, error } = await ended(world, `/v1/sites/${siteId}/workflows/${await workflowOf(world.api, siteId)}`, {
    caller,
  });
  return { status, code: error?.code };
};
const audited = (siteId: string) => auditOf(world, siteId, 'vendor_snapshot.restore');

const lostAnswers = [
  ['500', { kind: 'fixed', status: 500 }],
  ['HTML', { kind: 'fixed', status: 200, body: '<html>oops' }],
  ['half an answer', { kind: 'truncated', bytes: 5 }],
  ['no answer', { kind: 'reset' }],
] as const;

it.each(lostAnswers)(
  'an order that was taken and answered with %s is done once, found again, and noted once (D1, D4)',
  async (_what, answer) => {
    const { siteId, packageId } = await makeVendorSite(world);
    await world.vendor.fault({ method: 'POST', path: 'restoreSnapshot$', isCarriedOut: true, answer });
    const answered = await restoreWeb(siteId);
    expect([answered.status, answered.json]).toMatchObject([202, { in_progress: true }]);
    await atRest(world, siteId);
    expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([['restore'], 1]);
    expect((await world.vendor.content(packageId)).web).toEqual(vendorContent(1).web);
  },
);

it.each(lostAnswers)(
  'an order that never arrived (%s) is not sent again, ends as not taken on, and is not noted (D1)',
  async (_what, answer) => {
    const { siteId, packageId } = await makeVendorSite(world);
    await world.vendor.fault({ method: 'POST', path: 'restoreSnapshot$', answer });
    const before = (await world.vendor.calls()).length;
    const answered = await restoreWeb(siteId);
    expect([answered.status, answered.json]).toMatchObject([
      503,
      { code: 'dependency_unavailable', dependency: 'vendor' },
    ]);
    expect(await over(siteId)).toMatchObject({ status: 'failed', code: 'vendor_not_accepted' });
    const sent = (await world.vendor.calls())
      .slice(before)
      .filter(({ method, path }) => method === 'POST' && path.includes(`/${packageId}/`));
    expect(sent).toHaveLength(1);
    expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([[], 0]);
    expect((await world.vendor.content(packageId)).web).toEqual(vendorContent(2).web);
    expect((await restoreWeb(siteId)).status).toBe(202);
  },
);

it('a worker that takes over does not send again what its predecessor had sent, though no job is to be seen (D1)', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  await world.vendor.fault({ method: 'POST', path: 'restoreSnapshot$', answer: { kind: 'reset' } });
  const orders = async () =>
    (await world.vendor.calls()).filter(({ method, path }) => method === 'POST' && path.includes(`/${packageId}/`))
      .length;
  const answering = restoreWeb(siteId);
  await until(async () => (await orders()) === 1);
  worker.kill('SIGKILL');
  worker = world.spawnWorker();
  expect(await over(siteId)).toMatchObject({ status: 'failed', code: 'vendor_not_accepted' });
  expect([await orders(), await donesOf(world, packageId), await audited(siteId)]).toEqual([1, [], 0]);
  // On a busy machine the request may stop waiting before the next worker has started. The note shows that the vendor
  // may have got the request, so the answer is 202 then.
  expect([202, 503]).toContain((await answering).status);
});

const failuresOf = async (siteId: string): Promise<number> => {
  const sql = "SELECT failures FROM workflow_step WHERE workflow_id = $1 AND name = 'send'";
  const [row] = await world.api.rows<{ failures: number }>(sql, [await workflowOf(world.api, siteId)]);
  return row?.failures ?? 0;
};

it('a vendor that cannot be asked about an order it has taken is waited for: no attempt is used up, no staff are called (D2, D3)', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  await world.vendor.fault({ path: '/jobs$', answer: { kind: 'as_usual' } });
  await world.vendor.fault({ path: '/jobs$', times: 60, answer: { kind: 'fixed', status: 429 } });
  const answered = await restoreWeb(siteId);
  expect(answered.status).toBe(202);
  expect(await over(siteId)).toMatchObject({ status: 'succeeded' });
  expect([await failuresOf(siteId), await donesOf(world, packageId), await audited(siteId)]).toEqual([
    0,
    ['restore'],
    1,
  ]);
});

it('a vendor that takes nothing leaves the site free, without staff, once the request has given up', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  await world.vendor.fault({
    method: 'POST',
    path: 'restoreSnapshot$',
    times: 99,
    answer: { kind: 'fixed', status: 401 },
  });
  const answered = await restoreWeb(siteId);
  expect([answered.status, answered.json]).toMatchObject([503, { code: 'dependency_unavailable' }]);
  expect(await over(siteId)).toMatchObject({ status: 'failed', code: 'start_by_passed' });
  expect([await failuresOf(siteId), await donesOf(world, packageId), await audited(siteId)]).toEqual([0, [], 0]);
});

it('tries the same order again while the vendor is locked, and answers once it is taken (D3, D8)', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const locked = { kind: 'fixed', status: 423, headers: { 'retry-after': '1' } } as const;
  await world.vendor.fault({ method: 'POST', path: 'restoreSnapshot$', times: 2, answer: locked });
  expect((await restoreWeb(siteId)).status).toBe(202);
  await atRest(world, siteId);
  expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([['restore'], 1]);
});

const listingsAsked = async (packageId: string): Promise<number> =>
  (await world.vendor.calls()).filter(({ path }) => path === `/package/${packageId}/web/timelineBackup`).length;

it.each([
  ['before it has accepted anything: 503', 1, 503, 2],
  ['for the answer to what was accepted: 202, with what was listed before', 3, 202, 3],
])(
  'a vendor that no longer answers is waited for less time than the gateway waits, %s',
  async (_when, from, status, asked) => {
    const { siteId, packageId } = await makeVendorSite(world);
    const timestamp = (await surfaceOf(world, siteId)).web?.points[0]?.timestamp ?? '';
    const before = await listingsAsked(packageId);
    if (from > 1) await world.vendor.fault({ path: 'timelineBackup$', times: from - 1, answer: { kind: 'as_usual' } });
    await world.vendor.fault({ path: 'timelineBackup$', times: 9, answer: { kind: 'silence' } });
    const answered = await restore(world, siteId, { scope: 'web', timestamp });
    expect(answered.status).toBe(status);
    // A read of the listing takes 4 s at most, so the number of reads tells how long the request waited.
    expect((await listingsAsked(packageId)) - before).toBeLessThanOrEqual(asked);
    await world.vendor.clearFaults();
    if (status === 202) await atRest(world, siteId);
  },
);

it('answers 422 if the vendor itself refuses, without an audit entry', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  await world.vendor.fault({ method: 'POST', path: 'restoreSnapshot$', answer: { kind: 'fixed', status: 422 } });
  const answered = await restoreWeb(siteId);
  expect([answered.status, answered.json]).toMatchObject([422, { code: 'scope_not_restorable' }]);
  expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([[], 0]);
});

it('reads the listing again before it sends: a point that has just gone is refused (D7)', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const timestamp = (await surfaceOf(world, siteId)).web?.points[0]?.timestamp ?? '';
  const real = await fetch(`${world.vendor.url}/package/${packageId}/web/timelineBackup`, {
    headers: { authorization: `Bearer ${world.vendor.keys.live}` },
  });
  const answer = { kind: 'fixed', status: 200, body: await real.text() } as const;
  await world.vendor.change(packageId, { forget: { scope: 'web', id: '', restoreAsOf: Number(timestamp) } });
  // The API gets an earlier listing, which has the point. The worker gets the real one, which lacks the point.
  await world.vendor.fault({ path: 'timelineBackup$', times: 1, answer });
  const answered = await restore(world, siteId, { scope: 'web', timestamp });
  expect([answered.status, answered.json]).toMatchObject([422, { code: 'restore_point_stale' }]);
  expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([[], 0]);
});

it('fails the workflow, without staff, when the vendor’s job fails', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  await world.vendor.change(packageId, { failsNextJob: true });
  const answered = await restoreWeb(siteId);
  expect(answered.status).toBe(202);
  const view = await ended(world, answered.headers['location']);
  expect(view).toMatchObject({ status: 'failed', error: { code: 'vendor_restore_failed' } });
  expect(await surfaceOf(world, siteId)).toMatchObject({ in_progress: false, can_back_up: true });
});

it('accepts exactly one of five restores at once', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const timestamp = (await surfaceOf(world, siteId)).web?.points[0]?.timestamp ?? '';
  // The clock of the vendor stands still, so that the job lasts until all requests are answered. After the end of the
  // job another restore would be allowed.
  await world.vendor.setClock({ scale: 0 });
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => restore(world, siteId, { scope: 'web', timestamp })),
  );
  await world.vendor.setClock({ scale: 100 });
  expect([202, 422].map((wanted) => answers.filter(({ status }) => status === wanted).length)).toEqual([1, 4]);
  await atRest(world, siteId);
  expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([['restore'], 1]);
});

it('a sandbox site called fail_restore is accepted and fails, and its content stays as it was', async () => {
  const sandbox: HostingWorld['caller'] = { ...world.caller, mode: 'sandbox' };
  const created = await world.api.call('POST', '/v1/sites', {
    caller: sandbox,
    body: { name: 'Shop fail_restore', primary_domain: `${uuidv7()}.example.com`, platform: 'vendor' },
  });
  const { id } = created.json as { id: string };
  const row = await until(async () => {
    const [found] = await world.api.rows<{ package_id: string }>(
      'SELECT package_id FROM vendor_packages WHERE site_id = $1',
      [id],
    );
    return (await world.api.rows("SELECT 1 FROM sites WHERE id = $1 AND status = 'active'", [id])).length > 0 && found;
  });
  await world.vendor.fill(row.package_id, vendorContent(1));
  await world.vendor.keepPoints(row.package_id);
  const surface = (await world.api.call('GET', snapshotsPath(id), { caller: sandbox })).json as {
    web: { points: [{ timestamp: string }] };
  };
  const body = { scope: 'web', timestamp: surface.web.points[0].timestamp };
  expect((await restore(world, id, body, { caller: sandbox })).status).toBe(202);
  expect(await over(id, sandbox)).toMatchObject({ status: 'failed', code: 'vendor_restore_failed' });
  expect(await donesOf(world, row.package_id)).toEqual([]);
});

it('without a worker nothing is started: 503, and what was accepted is cancelled', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  worker.kill('SIGTERM');
  await until(() => worker.exitCode !== null, { what: 'the end of the worker' });
  const answered = await restoreWeb(siteId);
  expect([answered.status, answered.json]).toMatchObject([503, { dependency: 'hosting-worker' }]);
  worker = world.spawnWorker();
  expect(await over(siteId)).toMatchObject({ status: 'failed', code: 'start_by_passed' });
  // A request that comes before the worker is ready gets 503 and is not carried out.
  await until(async () => (await restoreWeb(siteId)).status === 202, { timeoutMs: 120_000, what: 'the worker' });
  await atRest(world, siteId);
  expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([['restore'], 1]);
});

it('an order that the request has given up on is not sent by a worker that wakes too late', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const stall = { path: '/jobs$', times: 1, delayMs: 12_000, answer: { kind: 'reset' } } as const;
  await world.vendor.fault({ path: 'timelineBackup$', times: 1, answer: { kind: 'as_usual' } });
  await world.vendor.fault({ ...stall, method: 'GET' });
  await world.vendor.fault({ ...stall, times: 2, method: 'GET' });
  const answered = await restoreWeb(siteId);
  expect([answered.status, answered.json]).toMatchObject([503, { dependency: 'vendor' }]);
  expect(await over(siteId)).toMatchObject({ status: 'failed' });
  expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([[], 0]);
});

const sendBy = (siteId: string, at: Date) =>
  world.api.rows("UPDATE workflow SET input = jsonb_set(input, '{sendBy}', to_jsonb($2::text)) WHERE subject_id = $1", [
    siteId,
    at.toISOString(),
  ]);

it.each(['at once', 'when it is too late to send'] as const)(
  'a database that was put back to a moment before an order went out finds the order at the vendor, %s: it is followed and noted, and not sent again',
  async (when) => {
    const { siteId, packageId } = await makeVendorSite(world);
    await world.endWorkers();
    const faults = mkdtempSync(path.join(tmpdir(), 'drydock-vendor-faults-'));
    writeFileSync(path.join(faults, 'vendor_restore.send.before@kill'), '');
    const dying = world.spawnWorker({ DRYDOCK_FAULTS: faults });
    const killed = once(dying, 'exit');
    // A request that is accepted before the worker is ready may be cancelled. Then the test sends another.
    let asked: Promise<unknown>;
    do {
      asked = restoreWeb(siteId);
      await Promise.race([killed, asked]);
    } while (dying.signalCode === null);
    rmSync(faults, { recursive: true });
    // The deadline is far in the future, because the next worker may start late.
    await sendBy(siteId, new Date(Date.now() + 3_600_000));
    const moment = await takeMoment(world.api.postgres.adminUrl);
    worker = world.spawnWorker();
    await asked;
    expect(await over(siteId)).toEqual({ status: 'succeeded', code: undefined });
    await world.endWorkers();
    await putBack(world.api.postgres.adminUrl, moment);
    if (when === 'when it is too late to send') await sendBy(siteId, new Date(Date.now() - 1_000));
    worker = world.spawnWorker();
    expect(await over(siteId)).toEqual({ status: 'succeeded', code: undefined });
    expect([await donesOf(world, packageId), await audited(siteId)]).toEqual([['restore'], 1]);
  },
);
