/**
 * @processes
 * @root
 */
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createSiteHostClient, createSiteHostReaderClient } from '@drydock/agent/clients';
import { createControlClient, nothing } from '@drydock/agent/control';
import { siteHostProtocol } from '@drydock/agent/site';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { stageCopy } from '../../test/archives';
import { claim, clearHost, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { fillVersion, readPage } from '../../test/versions';

let host: TestHost;
beforeAll(async () => {
  host = await startHost(await hostConfig());
});
afterAll(() => clearHost(host, []));

const ledger = async (): Promise<Record<string, string>[]> =>
  (await readFile(path.join(host.config.SITES_DIR, 'ledger.ndjson'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

test('making a site a second time changes nothing', async () => {
  const siteId = newSiteId();
  const [first, second] = await Promise.all(
    [1, 2].map(() => host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1))),
  );
  // Other processes use the same disk between the two answers, so the free bytes may differ.
  expect(second).toEqual({ ...first, free_bytes: second?.free_bytes });
  expect(first).toMatchObject({
    site_id: siteId,
    mode: 'live',
    current_release: 'initial',
    frozen: false,
    releases: ['initial'],
  });
  expect(first?.free_bytes).toBeGreaterThan(0);
  const folder = path.join(host.config.SITES_DIR, 'live', siteId);
  expect((await stat(path.join(folder, 'site.json'))).mode & 0o777).toBe(0o600);
  const files = await stat(path.join(folder, 'current', 'files'));
  const isRoot = process.getuid?.() === 0;
  expect(first?.owner).toEqual(isRoot ? { uid: files.uid, gid: files.gid } : null);
  expect(files.uid >= 200_000).toBe(isRoot);
  await host.client.destroySite(siteId, claim(1));
});

test('a restart keeps addresses, contents, password and fence', async () => {
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org', mode: 'sandbox' }, claim(1));
  await fillVersion(site, 1);
  await fillVersion(await stageCopy(host, siteId, 'next', 2), 2);
  await host.client.switchRelease(siteId, { releaseId: 'next', expectedRelease: 'initial' }, claim(3));
  await host.client.thawSite(siteId, claim(3));
  await host.stop();
  host = await startHost(host.config);
  expect(await host.client.readSite(siteId)).toMatchObject({
    url: site.url,
    database_url: site.database_url,
    mode: 'sandbox',
    current_release: 'next',
    frozen: false,
  });
  expect(await readPage(site.url)).toBe('file=2 row=2');
  expect(await runSql(site.database_url, 'select v from version')).toEqual([{ v: 2 }]);
  await expect(host.client.thawSite(siteId, claim(2))).rejects.toMatchObject({ code: 'stale_fence' });
  await host.client.destroySite(siteId, claim(3));
});

test('a site whose releases cannot be listed keeps every database, and is served once they can be', async () => {
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await fillVersion(site, 1);
  await host.stop();
  const releases = path.join(host.config.SITES_DIR, 'live', siteId, 'releases');
  await rename(releases, `${releases}-away`);
  await writeFile(releases, '');
  host = await startHost(host.config);
  await rm(releases);
  await rename(`${releases}-away`, releases);
  expect(await until(() => readPage(site.url))).toBe('file=1 row=1');
  await host.client.destroySite(siteId, claim(1));
});

test('a site that cannot be opened yet still tells its live release, which nobody can remove', async () => {
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await fillVersion(site, 1);
  await host.stop();
  const record = path.join(host.config.SITES_DIR, 'live', siteId, 'releases/initial/release.json');
  await rename(record, `${record}-away`);
  host = await startHost(host.config);
  expect(await host.client.readSite(siteId)).toMatchObject({ current_release: 'initial', releases: ['initial'] });
  await expect(host.client.removeRelease(siteId, 'initial', claim(2))).rejects.toMatchObject({
    code: 'release_is_current',
  });
  expect(await host.client.probeSite(siteId, '/')).toMatchObject({ http_status: null, sql_answered: false });
  await rename(`${record}-away`, record);
  expect(await until(() => readPage(site.url))).toBe('file=1 row=1');
  await host.client.destroySite(siteId, claim(2));
});

test('neither an unreadable record nor a folder that is no site keeps another site from being served', async () => {
  const [good, bad] = [newSiteId(), newSiteId()];
  const site = await host.client.ensureSite(good, { domain: 'a.org' }, claim(1));
  await fillVersion(site, 1);
  await host.client.ensureSite(bad, { domain: 'b.org' }, claim(1));
  await host.stop();
  const live = path.join(host.config.SITES_DIR, 'live');
  const record = path.join(live, bad, 'site.json');
  const text = await readFile(record, 'utf8');
  await writeFile(record, text.slice(0, 20));
  await writeFile(path.join(live, 'notes.txt'), '');
  host = await startHost(host.config);
  expect(await readPage(site.url)).toBe('file=1 row=1');
  // The site exists. If the answer said that it is missing or destroyed, its data would be left behind.
  await expect(host.client.readSite(bad)).rejects.toMatchObject({ code: 'internal' });
  await expect(host.client.destroySite(bad, claim(2))).rejects.toMatchObject({ code: 'internal' });
  await host.stop();
  await writeFile(record, text);
  host = await startHost(host.config);
  for (const siteId of [good, bad]) await host.client.destroySite(siteId, claim(1));
});

test('destroying removes everything, and an older fence cannot bring the site back', async () => {
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(5));
  await stageCopy(host, siteId, 'next', 5);
  const role = new URL(site.database_url).username;
  await host.client.destroySite(siteId, claim(6));
  await host.client.destroySite(siteId, claim(6));
  await expect(host.client.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
  await expect(fetch(site.url)).rejects.toThrow('fetch failed');
  const left = await runSql(
    readSharedCluster().adminUrl,
    `select 1 from pg_roles where rolname = '${role}' union all select 1 from pg_database where datname like '${role}%'`,
  );
  expect(left).toEqual([]);
  await until(async () => (await readdir(path.join(host.config.SITES_DIR, 'trash'))).length === 0, {
    timeoutMs: 30_000,
  });
  expect(await readdir(path.join(host.config.SITES_DIR, 'live'))).not.toContain(siteId);
  await expect(host.client.ensureSite(siteId, { domain: 'a.org' }, claim(4))).rejects.toMatchObject({
    code: 'stale_fence',
  });
});

test('a site whose destruction failed halfway serves its visitors when it is made again', async () => {
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(5));
  const role = new URL(site.database_url).username;
  const inDatabase = new URL(readSharedCluster().adminUrl);
  const ownDatabase = `select datname from pg_database where datname like '${role}%'`;
  const [database] = await runSql<{ datname: string }>(inDatabase.href, ownDatabase);
  inDatabase.pathname = database?.datname ?? '';
  // A database with a subscription cannot be dropped.
  await runSql(
    inDatabase.href,
    `create subscription "${role}" connection 'dbname=x' publication x with (connect = false, slot_name = none)`,
  );
  const isDestroyed = await host.client.destroySite(siteId, claim(6)).then(
    () => true,
    () => false,
  );
  expect(isDestroyed).toBe(false);
  await runSql(inDatabase.href, `drop subscription "${role}"`);
  const again = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(7));
  await fillVersion(await stageCopy(host, siteId, 'next', 7), 2);
  await host.client.switchRelease(
    siteId,
    { releaseId: 'next', expectedRelease: again.current_release ?? '' },
    claim(7),
  );
  await host.client.thawSite(siteId, claim(7));
  expect(await readPage(again.url)).toBe('file=2 row=2');
  await host.client.destroySite(siteId, claim(8));
});

test('the ledger has every change in its order, refused ones too', async () => {
  const siteId = newSiteId();
  await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(9));
  await host.client.thawSite(siteId, claim(8)).catch(() => undefined);
  await host.client.destroySite(siteId, claim(9));
  const lines = (await ledger()).filter((line) => line['site'] === siteId);
  expect(lines.map(({ op, fence, workflow_id, outcome }) => [op, fence, workflow_id, outcome])).toEqual([
    ['ensure_site', '9', 'workflow-9', 'accepted'],
    ['thaw', '8', 'workflow-8', 'refused'],
    ['destroy_site', '9', 'workflow-9', 'accepted'],
  ]);
});

test('a call with a wrong token, without a token or outside of the protocol is refused', async () => {
  const address = host.controlUrl;
  const stranger = createSiteHostClient({ url: address, secret: 'ab'.repeat(32) });
  await expect(stranger.readSite(newSiteId())).rejects.toMatchObject({ code: 'unauthenticated' });
  await stranger.close();
  expect((await fetch(`${address}/control/sites/${newSiteId()}`)).status).toBe(401);
  expect((await fetch(`${address}/readyz`)).status).toBe(200);
  await expect(host.client.readSite('../../etc')).rejects.toMatchObject({ code: 'invalid_request' });
  await expect(host.client.removeRelease(newSiteId(), '../x', claim(1))).rejects.toMatchObject({
    code: 'invalid_request',
  });
  await expect(host.client.freezeSite(newSiteId(), 1_000, { fence: 'x' })).rejects.toMatchObject({
    code: 'invalid_request',
  });
  await expect(host.client.freezeSite(newSiteId(), 1_000, claim(1))).rejects.toMatchObject({ code: 'unknown_site' });
});

test('a reader sees neither a password nor a path of the site, and can change nothing', async () => {
  const siteId = newSiteId();
  await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  const known = await host.client.readSite(siteId);
  const secret = host.config.SITE_HOST_READER_SECRET ?? '';
  const reader = createSiteHostReaderClient({ url: host.controlUrl, secret });
  const summary = await reader.readSite(siteId);
  // Other processes use the disk meanwhile, so the free bytes may differ.
  const { free_bytes: freeBytes, ...rest } = summary;
  expect(known).toMatchObject(rest);
  expect(freeBytes).toBeGreaterThan(0);
  const everything = createControlClient(siteHostProtocol, {
    url: host.controlUrl,
    secret,
    role: 'readers',
    deadlineMs: 5_000,
  });
  const sent = await everything.ask('GET', { id: siteId, answer: z.record(z.string(), z.unknown()) });
  expect(Object.keys(sent).sort()).toEqual(Object.keys(summary).sort());
  expect(JSON.stringify(sent)).not.toMatch(/postgresql:|password|\/files/);
  const refused = { code: 'readers_only_ask' };
  await expect(everything.change('DELETE', { id: siteId, claim: claim(9), answer: nothing })).rejects.toMatchObject(
    refused,
  );
  await expect(
    everything.change('POST /app/restart', { id: siteId, claim: claim(9), answer: nothing }),
  ).rejects.toMatchObject(refused);
  const probe = { id: siteId, body: { path: '/' }, answer: nothing };
  await expect(everything.ask('POST /probe', probe)).rejects.toMatchObject(refused);
  await host.client.destroySite(siteId, claim(9));
  await Promise.all([reader.close(), everything.close()]);
});

test('a host that does not run is reported as unreachable', async () => {
  const client = createSiteHostClient({ url: 'http://127.0.0.1:1', secret: 'ab'.repeat(32) });
  await expect(client.readSite(newSiteId())).rejects.toMatchObject({ code: 'unreachable' });
  await client.close();
});
