/**
 * @tier long
 * @processes
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { defaultMajor, findPostmaster, settlePostgresFolder } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { isSameProcess, proveProcess } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import { stageCopy } from '../test/archives';
import { claim, clearHost, hostConfig, newSiteId, startHost } from '../test/host';
import { spawnHost } from '../test/spawned-host';
import { fillVersion, readPage } from '../test/versions';
import { SiteFolder } from './on-disk/site-folder';

test.each([
  ['site_host.switch.before_rename', 1],
  ['site_host.switch.after_rename', 2],
])('killed with -9 at %s the site is release %d, whole, and closed until it is thawed', async (point, version) => {
  const config = await hostConfig();
  const faults = await mkdtemp(path.join(os.tmpdir(), 'drydock-faults-'));
  const siteId = newSiteId();
  const { child, client } = await spawnHost(config, faults);
  const site = await client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await fillVersion(site, 1);
  await fillVersion(await stageCopy({ client }, siteId, 'next', 1), 2);
  await writeFile(path.join(faults, `${point}@kill`), '');
  const exited = once(child, 'exit');
  const move = { releaseId: 'next', expectedRelease: 'initial' };
  await expect(client.switchRelease(siteId, move, claim(1))).rejects.toMatchObject({ code: 'unreachable' });
  expect(await exited).toEqual([null, 'SIGKILL']);
  await client.close();

  const restarted = await startHost(config);
  expect(await restarted.client.readSite(siteId)).toMatchObject({ frozen: true });
  const through: string[] = [];
  const visits = [
    readPage(site.url).finally(() => through.push('page')),
    runSql(site.database_url, 'select v from version').finally(() => through.push('session')),
  ];
  expect(await restarted.client.probeSite(siteId, '/')).toMatchObject({ http_status: 200, sql_ok: true });
  expect([through, (await restarted.client.readSite(siteId)).frozen]).toEqual([[], true]);
  await restarted.client.thawSite(siteId, claim(1));
  expect(await Promise.all(visits)).toEqual([`file=${version} row=${version}`, [{ v: version }]]);
  // A worker repeats the step. That completes the switch if the kill came before the rename, and otherwise changes
  // nothing.
  expect((await restarted.client.switchRelease(siteId, move, claim(1))).current_release).toBe('next');
  await restarted.client.thawSite(siteId, claim(1));
  expect(await readPage(site.url)).toBe('file=2 row=2');
  await clearHost(restarted, [siteId]);
  await rm(faults, { recursive: true });
});

test('the freeze of a worker that is gone ends by itself, even after repeated kill -9 of the host', async () => {
  const config = await hostConfig();
  const siteId = newSiteId();
  const die = async ({ child, client }: Awaited<ReturnType<typeof spawnHost>>): Promise<void> => {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    await client.close();
  };
  const first = await spawnHost(config, '');
  const site = await first.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await fillVersion(site, 1);
  await first.client.freezeSite(siteId, 2_000, claim(1));
  await die(first);
  await die(await spawnHost(config, ''));
  const last = await startHost(config);
  expect(await readPage(site.url)).toBe('file=1 row=1');
  const folder = new SiteFolder(config.SITES_DIR, 'live', siteId);
  await until(async () => (await folder.readFreeze()) === null, { what: 'the end of its record' });
  await clearHost(last, [siteId]);
});

test('killed at arbitrary moments of staging and removing, nothing half-made is served or kept', async () => {
  const config = await hostConfig();
  const siteId = newSiteId();
  for (const [fence, afterMs] of [5, 40, 150, 400, 800].entries()) {
    const { child, client } = await spawnHost(config, '');
    const exited = once(child, 'exit');
    const site = await client.ensureSite(siteId, { domain: 'a.org' }, claim(fence));
    const work = stageCopy({ client }, siteId, 'next', fence).then(() =>
      client.removeRelease(siteId, 'next', claim(fence)),
    );
    setTimeout(() => child.kill('SIGKILL'), afterMs);
    await work.catch(() => undefined);
    await exited;
    await client.close();
    expect(site.current_release).toBe('initial');
  }
  const host = await startHost(config);
  const { releases, database_url } = await host.client.readSite(siteId);
  expect(releases.filter((release) => release !== 'next')).toEqual(['initial']);
  const named = await runSql<{ n: number }>(
    database_url,
    'select count(*)::int as n from pg_database where datdba = (select oid from pg_roles where rolname = current_user)',
  );
  expect(named).toEqual([{ n: releases.length }]);
  await clearHost(host, [siteId]);
});

test('killed with -9 it leaves no process of an application behind', async () => {
  const config = await hostConfig();
  const siteId = newSiteId();
  const { child, client } = await spawnHost(config, '');
  const site = await client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await writeFile(
    path.join(site.files_dir, 'app.js'),
    "const id = require('crypto').randomUUID(); require('http').createServer((_, answer) => answer.end(id)).listen(1)",
  );
  const before = await (await fetch(site.url)).text();
  const { pid } = await client.readApp(siteId);
  if (pid === null || proveProcess(pid) === null) throw new Error('the application does not run');
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  await client.close();
  await until(() => proveProcess(pid) === null, { timeoutMs: 30_000 });
  const host = await startHost(config);
  expect(await (await fetch(site.url)).text()).not.toBe(before);
  await clearHost(host, [siteId]);
});

test('SIGTERM ends it in order with code 0', async () => {
  const config = await hostConfig();
  const { child, client } = await spawnHost(config, '');
  await client.close();
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  await rm(config.SITES_DIR, { recursive: true });
});

test('killed with -9 the host takes its organisations’ servers along, and the next one serves what they had committed', async () => {
  const config = { ...(await hostConfig()), SITES_DATABASE_URL: undefined };
  const faults = await mkdtemp(path.join(os.tmpdir(), 'drydock-faults-'));
  const siteId = newSiteId();
  const { child, client } = await spawnHost(config, faults);
  const site = await client.ensureSite(siteId, { domain: 'a.org', organisation_id: 'org-1' }, claim(1));
  await fillVersion(site, 1);
  const folder = settlePostgresFolder(path.join(config.SITES_DIR, 'clusters/org-1'), defaultMajor);
  const server = findPostmaster(folder.dataDir);
  if (server === null) throw new Error('no server was found');
  await runSql(site.database_url, 'update version set v = 2');
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  await client.close();
  await until(() => !isSameProcess(server), { what: 'the end of the server' });

  const restarted = await startHost(config);
  expect(await readPage(site.url)).toBe('file=1 row=2');
  await clearHost(restarted, [siteId]);
});
