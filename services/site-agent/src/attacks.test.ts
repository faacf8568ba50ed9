/**
 * @processes
 * @root
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, link, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../test/host';

/* A customer's site tries to take resources of other sites, or more than its share. */

let host: TestHost;
let site: FilledSite;
let neighbour: FilledSite;
const [siteId, neighbourId] = [newSiteId(), newSiteId()];
const isRoot = process.getuid?.() === 0;

beforeAll(async () => {
  host = await startHost(await hostConfig());
  site = await host.client.ensureSite(siteId, { domain: 'attacker.org' }, claim(1));
  neighbour = await host.client.ensureSite(neighbourId, { domain: 'victim.org' }, claim(1));
  await writeFile(path.join(neighbour.files_dir, 'wp-config.php'), 'the canary of another organisation', {
    mode: 0o644,
  });
  await writeFile(path.join(neighbour.files_dir, 'index.html'), 'all is well');
  await writeFile(path.join(host.config.SITES_DIR, 'master.key'), 'the canary of the host', { mode: 0o600 });
});
afterAll(() => clearHost(host, [siteId, neighbourId]));

const url = (page: string): URL => new URL(page, site.url);
const put = (name: string, text: string): Promise<void> => writeFile(path.join(site.files_dir, name), text);
const sessionsOf = (): Promise<{ query: string }[]> =>
  runSql<{ query: string }>(
    readSharedCluster().adminUrl,
    `select query from pg_stat_activity where usename = '${new URL(site.database_url).username}' and state = 'active'`,
  );

describe('an application', () => {
  let generation = 10;
  async function ask(source: string): Promise<Response> {
    await put('app.js', source);
    generation += 1;
    await host.client.restartApp(siteId, claim(generation));
    return fetch(site.url);
  }
  afterAll(async () => {
    execFileSync('rm', [path.join(site.files_dir, 'app.js')]);
    const { pid } = await host.client.readApp(siteId);
    if (pid !== null) process.kill(pid, 'SIGKILL');
    await until(async () => (await host.client.readApp(siteId)).pid === null, { timeoutMs: 30_000 });
  });

  it('finds no file of another site or of the host, no other process and no environment but its own', async () => {
    const wanted = [
      path.join(neighbour.files_dir, 'wp-config.php'),
      path.join(host.config.SITES_DIR, 'master.key'),
      path.join(host.config.SITES_DIR, 'live', siteId, 'site.json'),
    ];
    const answer = await ask(`const fs = require('fs');
      const attempt = (work) => { try { return String(work()); } catch (error) { return error.code; } };
      const loot = {
        files: ${JSON.stringify(wanted)}.map((file) => attempt(() => fs.readFileSync(file))),
        folders: ${JSON.stringify([host.config.SITES_DIR, process.cwd()])}.map((folder) => attempt(() => fs.readdirSync(folder))),
        parent: attempt(() => fs.readFileSync('/proc/' + process.ppid + '/environ')),
        processes: fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && Number(name) !== process.pid).length,
      };
      require('http').createServer((_, answer) => answer.end(JSON.stringify(loot))).listen(1)`);
    expect(await answer.json()).toEqual({
      files: ['ENOENT', 'ENOENT', 'ENOENT'],
      folders: ['ENOENT', 'ENOENT'],
      parent: 'ENOENT',
      processes: 0,
    });
  });

  it('listens at no port that another process could take after its end', async () => {
    const answer = await ask(
      `const server = require('http').createServer((_, answer) => answer.end(typeof server.address())).listen(3000)`,
    );
    expect(await answer.text()).toBe('string');
  });

  it('gains nothing by putting a link in the place of its socket', async () => {
    const answer =
      await ask(`const fs = require('fs'); const server = require('http').createServer((request, answer) => {
        if (request.url === '/swap') { fs.renameSync(server.address(), '/tmp/aside'); fs.symlinkSync('/var/run/docker.sock', server.address()); }
        answer.end('myself');
      }).listen(1)`);
    expect(await answer.text()).toBe('myself');
    expect(await (await fetch(url('/swap'), { headers: { connection: 'close' } })).text()).toBe('myself');
    const asked = Array.from({ length: 10 }, async () =>
      (await fetch(site.url, { headers: { connection: 'close' } })).text(),
    );
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['myself']));
  });

  it('cannot end the agent by an answer that Node can read but not write', async () => {
    const answer = await ask(`require('net').createServer((socket) => {
        socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 000 Nothing\\r\\nContent-Length: 9\\r\\n\\r\\n'));
      }).listen(1)`);
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('application')]);
    expect(await (await fetch(neighbour.url)).text()).toBe('all is well');
  });

  it('fills no disk with its log while it runs', async () => {
    const answer =
      await ask(`const line = Buffer.alloc(65536, 'x'); for (let n = 0; n < 64; n += 1) require('fs').writeSync(1, line);
      require('http').createServer((_, answer) => answer.end('printed')).listen(1)`);
    expect(await answer.text()).toBe('printed');
    const folder = path.join(host.config.SITES_DIR, 'live', siteId);
    const sizes = await Promise.all(
      ['app.log', 'app.log.1'].map(async (name) => (await stat(path.join(folder, name))).size),
    );
    for (const size of sizes) expect(size).toBeLessThan(1.3 * 2 ** 20);
  });

  it('takes no more memory and no more processes than its share', async () => {
    const answer = await ask(`const { spawnSync } = require('child_process');
      const forks = 'n=0; while [ $n -lt 400 ]; do sleep 60 & n=$((n+1)); done';
      const { status: children, pid } = spawnSync('/bin/sh', ['-c', forks], { stdio: 'ignore', detached: true });
      process.kill(-pid, 'SIGKILL');
      let memory = 'had'; try { Buffer.alloc(1.5 * 2 ** 30, 1); } catch { memory = 'refused'; }
      require('http').createServer((_, answer) => answer.end([children !== 0, memory].join())).listen(1)`);
    expect(await answer.text()).toBe('true,refused');
  });

  it('has only ordinary restart files touched: another name of the same file stays as it was', async () => {
    await mkdir(path.join(site.files_dir, 'tmp'), { recursive: true });
    const file = path.join(site.files_dir, 'tmp/restart.txt');
    execFileSync('rm', ['-f', file]);
    await put('victim', 'untouched');
    await link(path.join(site.files_dir, 'victim'), file);
    const { mtimeMs } = await stat(file);
    await expect(host.client.restartApp(siteId, claim(90))).rejects.toMatchObject({ code: 'restart_blocked' });
    expect((await stat(path.join(site.files_dir, 'victim'))).mtimeMs).toBe(mtimeMs);
    execFileSync('rm', ['-f', file]);
  });
});

describe('a page', () => {
  /** `lift` is immutable, so it runs while a statement is planned. It removes that statement's time limit. */
  beforeAll(async () => {
    await runSql(
      site.database_url,
      `create function lift() returns text immutable language plpgsql as $$ begin return set_config('statement_timeout', '0', false); end $$`,
    );
  });

  it('with a value of 600 MB fails by itself; the host, the site and its neighbour go on', async () => {
    await put('huge.html', "<?sql select repeat('x', 600000000) where lift() is not null ?>");
    await put('small.html', '<?sql select 7 ?>');
    const [huge, ...others] = await Promise.all([
      fetch(url('huge.html')),
      fetch(url('small.html')),
      fetch(neighbour.url),
    ]);
    expect([huge.status, ...others.map(({ status }) => status)]).toEqual([500, 200, 200]);
    expect(await (await fetch(url('small.html'))).text()).toBe('7');
  });

  it('with a million rows shows the first thousand', async () => {
    await put('many.html', '<?each select n from generate_series(1, 1000000) n ?>{{n}},<?end?>');
    const text = await (await fetch(url('many.html'))).text();
    expect(text.split(',').slice(-2)).toEqual(['1000', '']);
  });

  it('cannot lift the limit of its statements, neither by an earlier one nor while one is planned', async () => {
    await put(
      'before.html',
      "<?sql select set_config('statement_timeout', '0', false) ?><?sql select pg_sleep(100) ?>",
    );
    await put('planned.html', '<?sql select pg_sleep(100) where lift() is not null ?>');
    const answers = await Promise.all(['before.html', 'planned.html'].map((page) => fetch(url(page))));
    expect(answers.map(({ status }) => status)).toEqual([500, 500]);
    await until(async () => (await sessionsOf()).length === 0, { timeoutMs: 30_000 });
  });

  it('that ends its process fails alone; the next request gets a fresh process', async () => {
    await put('slow.html', '<?sql select pg_sleep(1.5) ?>');
    const slow = fetch(url('slow.html'));
    await until(async () => (await sessionsOf()).some(({ query }) => query.includes('pg_sleep')), {
      timeoutMs: 30_000,
    });
    for (const pid of contentChildren()) process.kill(pid, 'SIGKILL');
    expect((await slow).status).toBe(503);
    expect(await (await fetch(url('small.html'))).text()).toBe('7');
    expect(await (await fetch(neighbour.url)).text()).toBe('all is well');
  });
});

/**
 * Returns the children of this process that serve sites' files. Of the processes in a box, only the outermost is a
 * child of this process.
 */
function contentChildren(): number[] {
  const all = readdirSync('/proc/self/task').flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' '),
  );
  const pids = all.filter((text) => text !== '').map(Number);
  return pids.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('content/server.js'));
}

test('one site gets twenty sessions and a clear refusal of the twenty-first; its neighbour gets its own', async () => {
  const clients: pg.Client[] = [];
  const codes: string[] = [];
  for (let n = 0; n < 24; n += 1) {
    const client = new pg.Client({ connectionString: site.database_url });
    client.on('error', () => undefined);
    clients.push(client);
    await client.connect().catch((error: { code?: string }) => codes.push(error.code ?? 'none'));
  }
  expect(new Set(codes)).toEqual(new Set(['53300']));
  expect(codes.length).toBeGreaterThanOrEqual(4);
  expect(await runSql(neighbour.database_url, 'select 1 as n')).toEqual([{ n: 1 }]);
  await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
});

test('no other account gets into a site’s folder, whatever modes its customer gives, nor into one that an earlier version made', async () => {
  const folder = path.join(host.config.SITES_DIR, 'live', neighbourId);
  await host.stop();
  // The folders get the modes of earlier versions.
  for (const opened of [folder, path.join(folder, 'releases', 'initial')]) await chmod(opened, 0o711);
  await chmod(path.join(folder, 'releases/initial/files'), 0o777);
  host = await startHost(host.config);
  expect(await readFile(path.join(neighbour.files_dir, 'wp-config.php'), 'utf8')).toContain('canary');
  const modes = await Promise.all(
    [folder, path.join(folder, 'releases/initial')].map(async (name) => (await stat(name)).mode & 0o007),
  );
  expect(modes).toEqual([0, 0]);
  if (!isRoot) return;
  const asAttacker = [
    '--reuid',
    String(site.owner?.uid),
    '--regid',
    String(site.owner?.gid),
    '--clear-groups',
    '--',
    'cat',
  ];
  const cat = (): Buffer =>
    execFileSync('setpriv', [...asAttacker, path.join(neighbour.files_dir, 'wp-config.php')], { stdio: 'pipe' });
  expect(cat).toThrow('Permission denied');
});
