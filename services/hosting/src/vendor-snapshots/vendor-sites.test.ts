/** @processes */
import type { DeletedSiteView } from '@drydock/contracts/hosting/deleted-sites';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { startApi } from '../../test/hosting-api';
import { makeVendorSite, openVendorWorld, surfaceOf, type VendorWorld } from '../../test/vendor-world';
import { createVendorHttp } from '../providers/vendor-http';
import { twentyiTimeline } from '../providers/vendor-timeline.twentyi';

let world: VendorWorld;
beforeAll(async () => {
  world = await openVendorWorld('postgres', callerOf());
  world.spawnWorker();
});
afterEach(() => world.vendor.clearFaults());
afterAll(() => world.close());

it('a site of platform vendor is a package there, seen at the vendor’s preview until its domain points to it', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const site = (await world.api.call('GET', `/v1/sites/${siteId}`)).json as { status: string; url: string };
  expect(site).toMatchObject({
    status: 'active',
    platform: 'vendor',
    url: `${world.vendor.url}/preview/${packageId}/`,
  });
  expect(await (await fetch(site.url)).text()).toBe('<h1>version 2</h1>');
  const backup = await world.api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
  expect(backup.json).toMatchObject({ code: 'platform_unsupported' });
});

it('a deleted site of the vendor has no package any more and cannot be restored', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const before = (await world.vendor.calls()).length;
  await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
  // Drydock knows the id of the package, so the deletion must not read the listing, which takes long in a large
  // account.
  expect((await world.vendor.calls()).slice(before).map(({ path }) => path)).not.toContain('/package');
  const http = createVendorHttp({ url: world.vendor.url, key: world.vendor.keys.live });
  expect(await twentyiTimeline(http).read(packageId)).toBeNull();
  await http.close();
  const { data } = (await world.api.call('GET', '/v1/sites/deleted')).json as { data: DeletedSiteView[] };
  expect(data.find(({ site_id: id }) => id === siteId)).toMatchObject({ restorable: false, reason_code: 'no_backup' });
});

it('a domain that is somebody else’s package at the vendor makes the site fail, and leaves that package alone', async () => {
  const domain = `${uuidv7()}.example.com`;
  const http = createVendorHttp({ url: world.vendor.url, key: world.vendor.keys.live });
  const { packageId } = await twentyiTimeline(http).ensurePackage('somebody else', domain);
  const created = await world.api.call('POST', '/v1/sites', {
    body: { name: 'Mine', primary_domain: domain, platform: 'vendor' },
  });
  expect(await ended(world, created.headers['location'])).toMatchObject({
    status: 'failed',
    error: { code: 'domain_in_use' },
  });
  expect(await twentyiTimeline(http).read(packageId)).not.toBeNull();
  await http.close();
  const { id } = created.json as { id: string };
  expect((await world.api.call('GET', `/v1/sites/${id}/vendor-snapshots`)).json).toMatchObject({
    code: 'no_vendor_package',
  });
});

const stepOf = (workflowId: string, name: string) =>
  world.api.rows('SELECT attempts, failures FROM workflow_step WHERE workflow_id = $1 AND name = $2', [
    workflowId,
    name,
  ]);

it('a vendor that wants fewer calls or is locked only delays a new site, which uses up no attempt', async () => {
  for (const status of [429, 423]) {
    const answer = { kind: 'fixed', status, headers: { 'retry-after': '1' } } as const;
    await world.vendor.fault({ method: 'POST', path: 'addWeb', answer });
  }
  const body = { name: 'Patient', primary_domain: `${uuidv7()}.example.com`, platform: 'vendor' };
  const created = await world.api.call('POST', '/v1/sites', { body });
  const view = await ended(world, created.headers['location']);
  expect(view).toMatchObject({ status: 'succeeded' });
  const { id } = created.json as { id: string };
  expect((await world.api.call('GET', `/v1/sites/${id}`)).json).toMatchObject({ status: 'active' });
  expect(await stepOf(view.id, 'provision')).toEqual([{ attempts: 3, failures: 0 }]);
});

it('a vendor that is locked for longer than a step has attempts only delays a deletion', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  const answer = { kind: 'fixed', status: 423, headers: { 'retry-after': '1' } } as const;
  await world.vendor.fault({ method: 'POST', path: 'deleteWeb', times: 6, answer });
  const deletion = await world.api.call('DELETE', `/v1/sites/${siteId}`);
  const view = await ended(world, deletion.headers['location']);
  expect(view).toMatchObject({ status: 'succeeded' });
  expect(await stepOf(view.id, 'destroy')).toEqual([{ attempts: 7, failures: 0 }]);
  expect((await world.vendor.ledger()).filter(({ resource }) => resource === packageId).map(({ op }) => op)).toContain(
    'deleteWeb',
  );
});

it.each([
  ['does not answer its listing', { method: 'GET', path: '^/package$', times: 4, status: 503 }],
  ['loses its answer about the new package', { method: 'POST', path: 'addWeb', times: 1, status: 500 }],
  ['refuses Drydock’s key', { method: 'GET', path: '^/package$', times: 1, status: 401 }],
])('a vendor that %s only delays a new site, which uses up no attempt', async (_what, { status, ...calls }) => {
  await world.vendor.fault({ ...calls, isCarriedOut: true, answer: { kind: 'fixed', status } });
  const body = { name: 'Patient', primary_domain: `${uuidv7()}.example.com`, platform: 'vendor' };
  const created = await world.api.call('POST', '/v1/sites', { body });
  const view = await ended(world, created.headers['location']);
  expect(view).toMatchObject({ status: 'succeeded' });
  expect(await stepOf(view.id, 'provision')).toEqual([{ attempts: 2, failures: 0 }]);
});

it('a vendor that does not answer its listing only delays the probe of a new site', async () => {
  // The creation of the package reads the listing twice. So these two reads are answered as usual, and the faults meet
  // the probe.
  await world.vendor.fault({ method: 'GET', path: '^/package$', times: 2, answer: { kind: 'as_usual' } });
  await world.vendor.fault({ method: 'GET', path: '^/package', times: 4, answer: { kind: 'fixed', status: 503 } });
  const body = { name: 'Patient', primary_domain: `${uuidv7()}.example.com`, platform: 'vendor' };
  const created = await world.api.call('POST', '/v1/sites', { body });
  const view = await ended(world, created.headers['location']);
  expect(view).toMatchObject({ status: 'succeeded' });
  expect(await stepOf(view.id, 'probe')).toEqual([{ attempts: 2, failures: 0 }]);
});

it('packages of the sandbox belong to another account', async () => {
  const { packageId } = await makeVendorSite(world);
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const body = { name: 'Test', primary_domain: `${uuidv7()}.example.com`, platform: 'vendor' };
  const created = await world.api.call('POST', '/v1/sites', { body, caller });
  expect(created.status).toBe(202);
  const sandbox = createVendorHttp({ url: world.vendor.url, key: world.vendor.keys.sandbox });
  expect(await twentyiTimeline(sandbox).read(packageId)).toBeNull();
  await sandbox.close();
});

it('in a mode without a vendor the platform is not offered', async () => {
  const { VENDOR_URL = '', VENDOR_READER_KEY = '' } = world.vendor.environment;
  const caller = callerOf();
  const api = await startApi(caller, { VENDOR_URL, VENDOR_READER_KEY });
  const body = { name: 'Test', primary_domain: 'a.example.com', platform: 'vendor' };
  expect((await api.call('POST', '/v1/sites', { body })).status).toBe(202);
  const answer = await api.call('POST', '/v1/sites', { body, caller: { ...caller, mode: 'sandbox' } });
  expect([answer.status, answer.json]).toMatchObject([422, { code: 'platform_unavailable' }]);
  await api.close();
});

it('a package that vanished at the vendor is no package', async () => {
  const { siteId, packageId } = await makeVendorSite(world);
  expect((await surfaceOf(world, siteId)).available).toBe(true);
  const http = createVendorHttp({ url: world.vendor.url, key: world.vendor.keys.live });
  await twentyiTimeline(http).removePackage(packageId);
  await http.close();
  const answer = await world.api.call('GET', `/v1/sites/${siteId}/vendor-snapshots`);
  expect([answer.status, answer.json]).toMatchObject([404, { code: 'no_vendor_package' }]);
});
