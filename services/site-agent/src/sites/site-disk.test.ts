/**
 * These tests wait for checks of the disk, which come at least five seconds apart.
 *
 * @tier long
 * @processes
 */
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { errorCodeOf } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { packSite, stageSite } from '../../test/archives';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

/* Sites fill more disk than their limit, which is 50 MB here. */

let host: TestHost;
let site: FilledSite;
let neighbour: FilledSite;
let folder: string;
const ids: [string, string] = [newSiteId(), newSiteId()];
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-site-disk-'));
  host = await startHost({ ...(await hostConfig()), SITE_DISK_GB: 0.05 });
  site = await host.client.ensureSite(ids[0], { domain: 'greedy.org', organisation_id: 'org-1' }, claim(1));
  neighbour = await host.client.ensureSite(ids[1], { domain: 'other.org', organisation_id: 'org-2' }, claim(1));
  await writeFile(path.join(neighbour.files_dir, 'index.html'), '<?sql select 7 ?>');
});
afterAll(async () => {
  await clearHost(host, ids);
  await rm(folder, { recursive: true, force: true });
});

const waits = { timeoutMs: 100_000 };
describe('an application', () => {
  /**
   * An application that writes 80 MB: into a named file, into a file without a name, or into a file in a closed folder.
   * For / it writes nothing.
   */
  const app = `const fs = require('fs');
    require('http').createServer((request, answer) => {
      fs.mkdirSync('/site/closed', { recursive: true });
      fs.chmodSync('/site/closed', 0o700);
      const name = request.url === '/closed' ? '/site/closed/large' : '/site/large';
      const file = fs.openSync(name, 'w');
      if (request.url === '/removed') fs.unlinkSync(name);
      if (request.url === '/closed') fs.chmodSync('/site/closed', 0);
      if (request.url !== '/') for (let n = 0; n < 80; n += 1) fs.writeSync(file, Buffer.alloc(1e6, 'x'));
      answer.end(request.url);
    }).listen(1);`;

  it.each(['/removed', '/closed', '/kept'])(
    'whose files are more than the site may have is ended and not started again: %s',
    async (request) => {
      await writeFile(path.join(site.files_dir, 'app.js'), app);
      await until(async () => (await fetch(new URL(request, site.url))).ok, waits);
      await until(async () => (await host.client.readApp(ids[0])).pid === null, { ...waits, what: 'its end' });
      expect(await (await fetch(neighbour.url)).text()).toBe('7');
      // The folder is opened before its removal, because without root's rights the mode 0 would keep out this test too.
      await chmod(path.join(site.files_dir, 'closed'), 0o700);
      await rm(path.join(site.files_dir, 'closed'), { recursive: true, force: true });
    },
  );

  it('with too many empty files is ended, because a file system holds a limited number of files', async () => {
    await rm(path.join(site.files_dir, 'large'), { force: true });
    const empty = `const fs = require('fs');
      require('http').createServer((request, answer) => {
        fs.mkdirSync('/site/empty', { recursive: true });
        if (request.url !== '/') for (let n = 0; n < 13000; n += 1) fs.writeFileSync('/site/empty/' + n, '');
        answer.end(request.url);
      }).listen(1);`;
    await writeFile(path.join(site.files_dir, 'app.js'), empty);
    await until(async () => (await fetch(new URL('/many', site.url))).ok, waits);
    await until(async () => (await host.client.readApp(ids[0])).pid === null, { ...waits, what: 'its end' });
    const made = await readdir(path.join(site.files_dir, 'empty'));
    expect(made.length).toBe(13_000);
    await rm(path.join(site.files_dir, 'empty'), { recursive: true });
    await writeFile(path.join(site.files_dir, 'app.js'), app);
    await until(async () => (await fetch(site.url)).ok, { ...waits, what: 'the application again' });
    await until(async () => (await fetch(new URL('/kept', site.url))).ok, waits);
    await until(async () => (await host.client.readApp(ids[0])).pid === null, { ...waits, what: 'its end' });
  });

  it('is started again once the files are within the limit', async () => {
    const refused = await fetch(site.url);
    expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('disk space')]);
    const { [ids[0]]: storage } = await host.client.listStorage();
    expect(storage).toMatchObject({ limit_bytes: 0.05e9, files: { state: 'far_over' }, database: { state: 'within' } });
    expect(storage?.files?.bytes).toBeGreaterThan(80e6);
    await writeFile(path.join(site.files_dir, 'large'), '');
    await until(async () => (await fetch(site.url)).ok, { ...waits, what: 'the application again' });
  });

  it('is started at the switch to a release within the limit, before that release has been counted', async () => {
    const archive = await packSite(host, ids[0], {
      releaseId: 'initial',
      folder: path.join(folder, 'small'),
      fence: 2,
    });
    await until(async () => (await fetch(new URL('/kept', site.url))).ok, waits);
    await until(async () => (await host.client.readApp(ids[0])).pid === null, { ...waits, what: 'its end' });
    expect((await fetch(site.url)).status).toBe(503);
    await stageSite(host, ids[0], archive, { releaseId: 'small', fence: 3 });
    await host.client.switchRelease(ids[0], { releaseId: 'small', expectedRelease: 'initial' }, claim(4));
    expect(await host.client.probeSite(ids[0], '/')).toMatchObject({ http_status: 200, sql_ok: true });
    await host.client.thawSite(ids[0], claim(4));
  });
});

describe('a database', () => {
  const refusalOf = (sql: string): Promise<string> =>
    runSql(site.database_url, sql).then(
      () => 'none',
      (error: unknown) => errorCodeOf(error),
    );
  const fill = (megabytes: number): string =>
    `insert into heap select repeat(md5(n::text), 31) from generate_series(1, ${megabytes} * 1000) n`;
  const writesAre = (code: string): Promise<unknown> =>
    until(async () => (await refusalOf('insert into heap values (1)')) === code, {
      ...waits,
      what: `writes with ${code}`,
    });

  it('that is too large begins its sessions read-only, and writes again once rows are deleted', async () => {
    await runSql(site.database_url, 'create table heap (text text)');
    await runSql(site.database_url, fill(38));
    await writesAre('25006');
    expect(await runSql(site.database_url, 'select count(*)::int as n from heap where text = md5(text)')).toEqual([
      { n: 0 },
    ]);
    const kept = new pg.Client({ connectionString: site.database_url });
    kept.on('error', () => undefined);
    await kept.connect();
    const write = (): Promise<string> =>
      kept.query('insert into heap values (1)').then(
        () => 'none',
        (error: unknown) => errorCodeOf(error),
      );
    expect(await write()).toBe('25006');
    await runSql(site.database_url, 'begin read write; truncate heap; commit');
    await writesAre('none');
    // The session that began with the limit ends with it, so that its client connects again and can write.
    await until(async () => (await write()) !== '25006', { ...waits, what: 'the end of the kept session' });
    await kept.end();
  });

  it('whose backup was taken above the limit can be written after the restore, without a finding about the limit', async () => {
    // Deleted rows keep their space until a vacuum, so the backup is smaller than the database.
    const table = 'create table if not exists heap (text text); alter table heap set (autovacuum_enabled = off)';
    await runSql(site.database_url, table);
    await runSql(site.database_url, fill(38));
    await writesAre('25006');
    // The statement is repeated, because the limit ends open sessions.
    const empty = 'begin read write; delete from heap; commit';
    await until(async () => (await refusalOf(empty)) === 'none', { ...waits, what: 'an empty table' });
    expect(await refusalOf('insert into heap values (1)')).toBe('25006');
    const { current_release: live } = await host.client.readSite(ids[0]);
    const releaseId = String(live);
    const archive = await packSite(host, ids[0], { releaseId, folder: path.join(folder, 'full'), fence: 5 });
    const { database } = await stageSite(host, ids[0], archive, { releaseId: 'writable', fence: 6 });
    await host.client.switchRelease(ids[0], { releaseId: 'writable', expectedRelease: releaseId }, claim(7));
    await host.client.thawSite(ids[0], claim(7));
    expect(await refusalOf('insert into heap values (1)')).toBe('none');
    expect(database).toEqual([]);
  });

  it('that keeps growing gets no sessions any more; its neighbour keeps its own', async () => {
    const goOn = `begin read write; ${fill(20)}; commit`;
    await until(async () => (await refusalOf(goOn)) === '53100', { ...waits, what: 'the end of its sessions' });
    expect(await runSql(neighbour.database_url, 'select 1 as n')).toEqual([{ n: 1 }]);
  });
});
