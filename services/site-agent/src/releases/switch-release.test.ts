/** @processes */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startPostgres } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { packSite, stageSite, type TestArchive } from '../../test/archives';
import { claim, clearHost, type Filled, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { fillVersion, readPage } from '../../test/versions';

let host: TestHost;
let archive: TestArchive;
let folder: string;
const siteId = newSiteId();
beforeAll(async () => {
  host = await startHost(await hostConfig());
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-switch-'));
  await host.client.ensureSite(siteId, { domain: 'example.org' }, claim(1));
  archive = await packSite(host, siteId, { releaseId: 'initial', folder: path.join(folder, 'empty'), fence: 1 });
});
afterAll(async () => {
  await clearHost(host, [siteId]);
  await rm(folder, { recursive: true });
});

/** Stages an empty release, as in a restore. */
async function stageEmpty(releaseId: string, fence: number): Promise<Filled> {
  await stageSite(host, siteId, archive, { releaseId, fence });
  return host.client.placeOfRelease(siteId, releaseId);
}

const switchBetween = (from: string, to: string) =>
  host.client.switchRelease(siteId, { releaseId: to, expectedRelease: from }, claim(5));

test('over ten switches a page is the old or the new one, never a mixture, never a failure', async () => {
  const site = await host.client.readSite(siteId);
  await fillVersion(site, 1);
  await fillVersion(await stageEmpty('second', 2), 2);
  const seen = new Map<string, number>();
  const seenOf = (version: number): number => seen.get(`file=${version} row=${version}`) ?? 0;
  let isDone = false;
  const samplers = Array.from({ length: 4 }, async () => {
    while (!isDone) {
      const page = await readPage(site.url);
      seen.set(page, (seen.get(page) ?? 0) + 1);
      await wait(2);
    }
  });
  let current = 'initial';
  for (let round = 0; round < 10; round++) {
    const [next, version] = current === 'initial' ? ['second', 2] : ['initial', 1];
    expect(await host.client.freezeSite(siteId, 60_000, claim(5))).toMatchObject({ frozen: true });
    expect((await switchBetween(current, next)).current_release).toBe(next);
    await host.client.thawSite(siteId, claim(5));
    const before = seenOf(version);
    await until(() => seenOf(version) >= before + samplers.length, { what: 'pages of the new release' });
    current = next;
  }
  isDone = true;
  await Promise.all(samplers);
  expect([...seen.keys()].sort()).toEqual(['file=1 row=1', 'file=2 row=2']);
});

test('a switch is idempotent, asks for the release that it expects, and knows its releases', async () => {
  const { current_release: current } = await host.client.readSite(siteId);
  const other = current === 'initial' ? 'second' : 'initial';
  await expect(switchBetween('nowhere', other)).rejects.toMatchObject({ code: 'release_mismatch' });
  await expect(switchBetween(String(current), 'missing')).rejects.toMatchObject({ code: 'unknown_release' });
  await switchBetween(String(current), other);
  expect((await switchBetween(String(current), other)).current_release).toBe(other);
  await host.client.thawSite(siteId, claim(5));
  await expect(host.client.removeRelease(siteId, other, claim(5))).rejects.toMatchObject({
    code: 'release_is_current',
  });
  await expect(stageEmpty(other, 5)).rejects.toMatchObject({ code: 'release_is_current' });
});

test('sessions of the old database end at the switch; the same URL leads to the new data', async () => {
  const site = await host.client.readSite(siteId);
  const other = site.current_release === 'initial' ? 'second' : 'initial';
  const expected = other === 'initial' ? 1 : 2;
  const session = new pg.Client({ connectionString: site.database_url });
  const ended = new Promise<void>((resolve) => session.on('end', () => resolve()));
  session.on('error', () => undefined);
  await session.connect();
  expect((await session.query('select v from version')).rows).toEqual([{ v: 3 - expected }]);

  await host.client.freezeSite(siteId, 60_000, claim(5));
  const held = new pg.Client({ connectionString: site.database_url });
  const connected = held.connect().then(() => held.query('select v from version'));
  let isThrough = false;
  void connected.then(() => {
    isThrough = true;
  });
  await switchBetween(String(site.current_release), other);
  await ended;
  expect(isThrough).toBe(false);
  expect(await host.client.probeSite(siteId, '/')).toEqual({
    http_status: 200,
    app_generation: null,
    sql_ok: true,
    sql_answered: true,
    detail: '',
  });
  await host.client.thawSite(siteId, claim(5));
  expect((await connected).rows).toEqual([{ v: expected }]);
  await held.end();
});

test('a freeze holds requests without failing them', async () => {
  const site = await host.client.readSite(siteId);
  await host.client.freezeSite(siteId, 60_000, claim(6));
  expect((await host.client.readSite(siteId)).frozen).toBe(true);
  let through = 0;
  const asked = Array.from({ length: 20 }, async () => {
    const page = await readPage(site.url);
    through += 1;
    return page;
  });
  // Without the freeze, the visitors would get their answers within this time.
  await wait(500);
  expect(through).toBe(0);
  await host.client.thawSite(siteId, claim(6));
  const pages = await Promise.all(asked);
  expect(new Set(pages).size).toBe(1);
  expect(pages[0]).toMatch(/^file=(\d) row=\1$/);
});

test('a freeze ends by itself when its time is over, and no sooner', async () => {
  const { url } = await host.client.readSite(siteId);
  const startedMs = performance.now();
  await host.client.freezeSite(siteId, 600, claim(6));
  expect(await readPage(url)).toMatch(/^file=(\d) row=\1$/);
  // The site agent started its clock after this test did, so the expectation also holds on a slow machine.
  expect(performance.now() - startedMs).toBeGreaterThan(590);
  expect((await host.client.readSite(siteId)).frozen).toBe(false);
});

test('a slow visitor of the old release does not end the freeze of the new release', async () => {
  const site = await host.client.readSite(siteId);
  const [from, to] = site.current_release === 'initial' ? ['initial', 'second'] : ['second', 'initial'];
  const large = path.join(site.files_dir, 'large.bin');
  await writeFile(large, '');
  await truncate(large, 100 << 20);
  const reading = http.get(new URL('large.bin', site.url), (response) => response.pause());
  reading.on('error', () => undefined);
  await once(reading, 'response');
  // The time of the freeze runs while the site agent waits for visitors, as in a restore.
  expect(await host.client.freezeSite(siteId, 5_000, claim(6))).toEqual({ frozen: true, drained: false });
  expect(await host.client.switchRelease(siteId, { releaseId: to, expectedRelease: from }, claim(6))).toMatchObject({
    current_release: to,
    frozen: true,
  });
  reading.destroy();
  await host.client.thawSite(siteId, claim(6));
});

test('an older fence changes nothing', async () => {
  const before = await host.client.readSite(siteId);
  await expect(host.client.freezeSite(siteId, 1_000, claim(4))).rejects.toMatchObject({ code: 'stale_fence' });
  await expect(stageEmpty('third', 4)).rejects.toMatchObject({ code: 'stale_fence' });
  await expect(host.client.destroySite(siteId, claim(4))).rejects.toMatchObject({ code: 'stale_fence' });
  await expect(host.client.ensureSite(siteId, { domain: 'x.org' }, claim(4))).rejects.toMatchObject({
    code: 'stale_fence',
  });
  expect(await host.client.readSite(siteId)).toMatchObject({ frozen: false, releases: before.releases });
});

test('staging again starts from empty, and a removed release is gone at once', async () => {
  const first = await stageEmpty('third', 7);
  await fillVersion(first, 3);
  const again = await stageEmpty('third', 7);
  expect(again.database_url).not.toBe(first.database_url);
  await fillVersion(again, 4);
  await host.client.removeRelease(siteId, 'third', claim(7));
  await host.client.removeRelease(siteId, 'third', claim(7));
  expect((await host.client.readSite(siteId)).releases).not.toContain('third');
  const { pathname } = new URL(again.database_url);
  const left = 'select datname from pg_database where datname = $1';
  expect(await runSql(readSharedCluster().adminUrl, left, [pathname.slice(1)])).toEqual([]);
});

test('a switch that fails after it has moved the site still ends the old release’s application', async () => {
  const data = path.join(folder, 'postgres');
  const first = await startPostgres({ folder: data });
  const other = await startHost({ ...(await hostConfig()), SITES_DATABASE_URL: first.adminUrl });
  const id = newSiteId();
  const site = await other.client.ensureSite(id, { domain: 'app.example.org' }, claim(1));
  await writeFile(
    path.join(site.files_dir, 'app.js'),
    "require('node:http').createServer((_, response) => response.end('answered')).listen(1);",
  );
  const packed = await packSite(other, id, { releaseId: 'initial', folder: path.join(folder, 'app'), fence: 1 });
  await stageSite(other, id, packed, { releaseId: 'second', fence: 2 });
  expect(await (await fetch(site.url)).text()).toBe('answered');
  const { pid } = await other.client.readApp(id);
  const isRunning = (): boolean => existsSync(`/proc/${pid}`);
  expect(isRunning()).toBe(true);

  await first.stop();
  const order = { releaseId: 'second', expectedRelease: 'initial' };
  await expect(other.client.switchRelease(id, order, claim(3))).rejects.toMatchObject({ code: 'internal' });
  expect((await other.client.readSite(id)).current_release).toBe('second');
  await until(() => !isRunning(), { what: 'the end of the old application' });

  const again = await startPostgres({ folder: data, port: first.port });
  expect((await other.client.switchRelease(id, order, claim(4))).current_release).toBe('second');
  await clearHost(other, [id]);
  await again.stop();
});
