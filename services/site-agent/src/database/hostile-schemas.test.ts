/**
 * @tier long
 * @processes
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Canaries } from '@drydock/postgres/testing/canaries';
import { hostileSchema, hostileSettings, trapStatements } from '@drydock/postgres/testing/hostile-schemas';
import { runSql, withClient } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { isChaos } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { packSite, stageSite, type TestArchive } from '../../test/archives';
import {
  claim,
  clearHost,
  type Filled,
  type FilledSite,
  hostConfig,
  newSiteId,
  startHost,
  type TestHost,
} from '../../test/host';
import { fillVersion, readPage } from '../../test/versions';

/*
 * Generated schemas of a hostile customer go through a backup, a restore, a trial restore on another site, pages with
 * all tables and views, and deletion. The tests of packages/postgres upgrade the same schemas.
 */

const { seed, count } = sampleOf('hostile schemas of sites', { inCi: 3, inChaos: 500 });
const perSite = isChaos ? 10 : 6;
const batches = Array.from({ length: Math.ceil(count / perSite) }, (_, number) => number);

const { adminUrl } = readSharedCluster();
let host: TestHost;
let neighbour: FilledSite;
let folder: string;
let canaries: Canaries;
beforeAll(async () => {
  host = await startHost(await hostConfig());
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-hostile-schemas-'));
  neighbour = await host.client.ensureSite(newSiteId(), { domain: 'neighbour.org' }, claim(1));
  await fillVersion(neighbour, 1);
  canaries = await Canaries.start([adminUrl]);
});
afterAll(async () => {
  await canaries?.stop();
  await clearHost(host, [neighbour.site_id]);
  await rm(folder, { recursive: true, force: true });
});

const roleOf = ({ database_url: url }: Filled): string => new URL(url).username;

interface Relation {
  schema: string;
  name: string;
  isTable: boolean;
}

const relationsSql = `select n.nspname as schema, c.relname as name, c.relkind = 'r' as "isTable" from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname ~ '^h[0-9]' and c.relkind in ('r', 'p', 'v', 'm', 'S')`;

/** Returns the customer's login with options that override the session settings that the customer has stored. */
const asOwner = ({ database_url: connectionString }: Filled) => ({
  connectionString,
  options:
    '-c search_path= -c role=none -c local_preload_libraries= -c default_transaction_read_only=off -c lock_timeout=2s',
});

async function makeHostile(batch: number): Promise<FilledSite> {
  const site = await host.client.ensureSite(newSiteId(), { domain: 'hostile.org' }, claim(1));
  await fillVersion(site, 1);
  const [owner, database] = [roleOf(site), new URL(site.database_url).pathname.slice(1)];
  await withClient(asOwner(site), async (client) => {
    for (const trap of trapStatements({
      owner,
      file: canaries.file,
      pid: canaries.pid,
      applicationName: canaries.applicationName,
    }))
      await client.query(trap);
    for (let number = batch * perSite; number < Math.min(count, (batch + 1) * perSite); number += 1)
      for (const statement of hostileSchema(seed, number).statements)
        await client.query(statement).catch(() => undefined);
    for (const setting of hostileSettings(new SeededRandom(seed + batch), { owner, database }))
      await client.query(setting).catch(() => undefined);
  });
  return site;
}

/** Writes a page for each relation, because one failing relation would hide the others on its page. */
async function writePages(site: FilledSite): Promise<string[]> {
  const relations = await runSql<Relation>(asOwner(site), relationsSql);
  const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
  const names = relations.map((_, number) => `relation-${number}.html`);
  for (const [number, { schema, name }] of relations.entries()) {
    const page = `<?each select t.*, t::text as shown from ${quote(schema)}.${quote(name)} t ?>{{shown}}<?end?>`;
    await writeFile(path.join(site.files_dir, names[number] ?? ''), page);
  }
  return names;
}

/**
 * Expects that no page and no trap of the site has read a canary, that no canary was harmed, and that the neighbour is
 * served.
 */
async function expectNoHarm(site: FilledSite, pages: readonly string[]): Promise<void> {
  for (const page of pages) {
    const text = await readPage(new URL(page, site.url).href);
    expect([page, canaries.isIn(text)]).toEqual([page, false]);
  }
  expect(await readPage(new URL('version.txt', site.url).href)).toBe('1');
  const loot = await runSql<{ text: string }>(asOwner(site), 'select text from public.loot');
  expect(loot.filter(({ text }) => canaries.isIn(text))).toEqual([]);
  expect(await canaries.harm((role) => role !== roleOf(site))).toEqual([]);
  expect(await readPage(neighbour.url)).toBe('file=1 row=1');
}

async function restore(site: FilledSite, archive: TestArchive, fence: number): Promise<FilledSite> {
  const { site_id: siteId } = site;
  await stageSite(host, siteId, archive, { releaseId: 'copy', fence });
  await host.client.switchRelease(siteId, { releaseId: 'copy', expectedRelease: 'initial' }, claim(fence));
  await host.client.thawSite(siteId, claim(fence));
  return host.client.readSite(siteId);
}

/** Restores the archive on another site, counts the rows of every relation as the owner, and requests every page. */
async function drill(archive: TestArchive, pages: readonly string[]): Promise<void> {
  const made = await host.client.ensureSite(newSiteId(), { domain: 'drill.org' }, claim(1));
  const site = await restore(made, archive, 2);
  const relations = await runSql<Relation>(asOwner(site), relationsSql);
  expect(relations.filter(({ isTable }) => isTable).length).toBeGreaterThan(0);
  for (const { schema, name } of relations)
    await host.client.countRows(site.site_id, { schema, name }, claim(2)).catch(() => undefined);
  await expectNoHarm(site, pages);
  await host.client.destroySite(site.site_id, claim(3));
}

test.each(batches)(
  `no code of a generated schema reaches beyond its site in backup, restore, drill, pages and deletion (seed ${seed}, site %i)`,
  async (batch) => {
    const site = await makeHostile(batch);
    const pages = await writePages(site);
    await expectNoHarm(site, pages);
    const packed = path.join(folder, `packed-${batch}`);
    const archive = await packSite(host, site.site_id, { releaseId: 'initial', folder: packed, fence: 2 });
    await expectNoHarm(await restore(site, archive, 3), pages);
    await drill(archive, pages);
    await host.client.destroySite(site.site_id, claim(4));
    expect(await canaries.harm((role) => role !== roleOf(site))).toEqual([]);
    expect(await readPage(neighbour.url)).toBe('file=1 row=1');
    await rm(packed, { recursive: true, force: true });
    if (isChaos) process.stderr.write(`site ${batch}: ${pages.length} relations, no harm\n`);
  },
);
