/**
 * Runs attacks one by one, which takes more than an hour.
 *
 * @tier chaos
 * @processes
 */
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { put, sql, Tenant, type TenantDatabase, type TenantSite } from './tenant';

/*
 * Only `npm run chaos` runs these attacks. The titles name the rows of a table in docs/security.md, which also tells
 * how to repeat the attacks on an older version.
 */
const run = isChaos ? test : test.skip;
const inChaos = (title: string, work: jest.ProvidesCallback): void =>
  run(isChaos ? title : `${title} (needs npm run chaos)`, work);
jest.setTimeout(900_000);

const secret = 'what only the owner of this machine may read';
let stack: TestStack;
let attacker: Tenant;
let victim: Tenant;
let victimsSite: TenantSite;
let folder: string;
/** A folder that only the account of this test may enter, with a file that only this account may read. */
let canary: string;
/**
 * A folder in which every account may write. The function `climb` creates a file here only if a superuser calls it. So
 * a file in this folder proves a successful attack.
 */
let rungs: string;

beforeAll(async () => {
  if (!isChaos) return;
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-attacks-'));
  fs.chmodSync(folder, 0o711);
  [canary, rungs] = [path.join(folder, 'canary'), path.join(folder, 'rungs')];
  fs.mkdirSync(canary, { mode: 0o700 });
  fs.mkdirSync(rungs);
  fs.chmodSync(rungs, 0o777);
  fs.writeFileSync(path.join(canary, 'secret.txt'), secret, { mode: 0o600 });
  stack = await startStack({ environment: { DRYDOCK_DEMO: 'sites' } });
  attacker = new Tenant(stack, stack.demo.live_key);
  victim = new Tenant(stack, stack.demo.other_org_key);
  victimsSite = await victim.makeSite('victim.example.org');
  put(victimsSite, 'index.html', 'all is well');
});
afterAll(async () => {
  await stack?.stop();
  if (isChaos) fs.rmSync(folder, { recursive: true, force: true });
});

const isSuper = 'select rolsuper from pg_catalog.pg_roles where rolname = current_user';

/**
 * Returns SQL for a function `climb`. If a superuser calls it, the function makes `role` a superuser and writes a file
 * with the name `how`. The file can be written even if the database refuses writes.
 */
const climbSql = (role: string): string => `
  create function public.climb(how text) returns boolean language plpgsql as $climb$ begin
    if (${isSuper}) then
      begin execute format('copy (select 1) to %L', '${rungs}/' || how); exception when others then null; end;
      begin execute 'alter role ${pg.escapeIdentifier(role)} superuser'; exception when others then null; end;
    end if;
    return true;
  end $climb$;`;

/** Returns SQL that hides statements in settings of the role. The values of these settings are lists of names. */
const settingSql = (role: string): string => `
  select pg_catalog.set_config('search_path', 'public;alter/**/role/**/${role}/**/superuser;--', false);
  alter role ${role} set search_path from current;
  alter role ${role} set temp_tablespaces = 'a; alter role ${role} superuser; --';`;

const ways: Readonly<Record<string, (role: string) => string>> = {
  'a cast to text': () => `
    create type loud as (v int); create table casts (id int primary key, v loud); insert into casts values (1, row(1));
    create function say(loud) returns text language plpgsql as $say$ begin perform public.climb('cast'); return 'x'; end $say$;
    create function say(casts) returns text language plpgsql as $say$ begin perform public.climb('cast of a row'); return 'x'; end $say$;
    create cast (loud as text) with function say(loud); create cast (casts as text) with function say(casts);`,
  'a check on an unlogged table': () => `
    create unlogged table ladder (n int check (public.climb('check'))); insert into ladder select n from generate_series(1, 10) n;`,
  'a setting that is a list': settingSql,
};

/** Backs the database up and upgrades it. Resolves with the owner's `rolsuper` afterwards. */
async function isSuperAfterUpgrade({ id, query }: TenantDatabase): Promise<unknown> {
  const backup = await attacker.must('POST', `/v1/databases/${id}/backups`, {});
  expect(await attacker.follow(backup.location)).toMatchObject({ status: 'succeeded' });
  const upgrade = await attacker.must('POST', `/v1/databases/${id}/upgrade`, { engine_version: '17' });
  expect(await attacker.follow(upgrade.location, 400_000)).toMatchObject({ status: 'succeeded' });
  return (await query(isSuper)).at(0);
}

for (const [name, sqlOf] of Object.entries(ways))
  inChaos(`row 1: the owner of a managed database becomes no superuser by ${name}`, async () => {
    fs.rmSync(rungs, { recursive: true });
    fs.mkdirSync(rungs);
    fs.chmodSync(rungs, 0o777);
    const database = await attacker.makeDatabase(name, '16');
    await database.query(climbSql(database.username) + sqlOf(database.username));
    const role = await isSuperAfterUpgrade(database);
    expect({ role, rungs: fs.readdirSync(rungs) }).toMatchObject({ rungs: [] });
    expect(
      await database.query(`select rolsuper from pg_catalog.pg_roles where rolname = '${database.username}'`),
    ).toEqual([{ rolsuper: false }]);
    await attacker.must('DELETE', `/v1/databases/${database.id}`);
  });

inChaos('row 1: nor by sequences that become views while backups list and read them', async () => {
  const database = await attacker.makeDatabase('swapped', '16');
  await database.query(climbSql(database.username));
  const count = 200;
  await database.query(Array.from({ length: count }, (_, n) => `create sequence s${n};`).join(''));
  let isOver = false;
  const swap = async (): Promise<void> => {
    const client = await database.connect();
    const view = (n: number) =>
      `create view s${n} as select 1::bigint as last_value, public.climb('view') as is_called`;
    while (!isOver) {
      const n = Math.floor(Math.random() * count);
      await client.query(`begin; drop sequence s${n}; ${view(n)}; commit`).catch(() => client.query('rollback'));
      await client.query(`begin; drop view s${n}; create sequence s${n}; commit`).catch(() => client.query('rollback'));
    }
    await client.end();
  };
  const swapping = [swap(), swap()];
  try {
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const backup = await attacker.call('POST', `/v1/databases/${database.id}/backups`, {});
      // The swaps may make a backup fail. Only the attacker is harmed then, so the failure is ignored.
      if (backup.status < 400) await attacker.follow(backup.location, 20_000).catch(() => undefined);
    }
  } finally {
    isOver = true;
    await Promise.all(swapping);
  }
  expect(fs.readdirSync(rungs)).toEqual([]);
});

/** Returns everything about the canary that an attack could change. */
function readCanary(): unknown {
  const facts = [canary, path.join(canary, 'secret.txt')].map((file) => {
    const { uid, gid, mode, ino } = fs.lstatSync(file);
    return { uid, gid, mode, ino };
  });
  return { facts, names: fs.readdirSync(canary), text: fs.readFileSync(path.join(canary, 'secret.txt'), 'utf8') };
}

const racedFolders = 200;

/**
 * Returns the code of an application that swaps 200 folders for links to the canary and back, as fast as it can. The
 * folders belong to the application's own files or to the files that a restore stages beside them. A request for
 * `/stop` ends the swapping.
 */
const racer = (
  releasesDir: string,
  where: 'own files' | 'staged files',
): string => `const fs = require('fs'), path = require('path'), { fork } = require('child_process');
  if (process.argv[2] === 'race') {
    process.on('disconnect', () => process.exit(0));
    const attempt = (work) => { try { return work(); } catch { return []; } };
    const list = () => attempt(() => fs.readdirSync(${JSON.stringify(releasesDir)}));
    const known = new Set(list());
    const staged = () => list().filter((name) => !known.has(name)).map((name) => path.join(${JSON.stringify(releasesDir)}, name, 'files'));
    const turn = () => {
      for (const root of ${where === 'own files' ? '[__dirname]' : 'staged()'}) for (let n = 0; n < ${racedFolders}; n += 1) {
        const dir = path.join(root, 'd' + n);
        attempt(() => fs.renameSync(dir, dir + '.aside'));
        attempt(() => fs.symlinkSync(${JSON.stringify(canary)}, dir));
        for (let spin = 0; spin < 5000; spin += 1) Math.random();
        attempt(() => fs.unlinkSync(dir));
        attempt(() => fs.renameSync(dir + '.aside', dir));
      }
      setImmediate(turn);
    };
    turn();
  } else {
    const child = fork(__filename, ['race'], { stdio: 'ignore' });
    require('http').createServer((request, answer) => { if (request.url === '/stop') child.kill('SIGKILL'); answer.end('racing'); }).listen(1);
  }`;

async function makeRacer(domain: string): Promise<TenantSite> {
  const site = await attacker.makeSite(domain);
  const own = fs.statSync(site.filesDir);
  const give = (file: string): void => fs.chownSync(file, own.uid, own.gid);
  for (let n = 0; n < racedFolders; n += 1) {
    const dir = path.join(site.filesDir, `d${n}`);
    fs.mkdirSync(dir);
    fs.writeFileSync(path.join(dir, 'secret.txt'), 'mine');
    for (const file of [dir, path.join(dir, 'secret.txt')]) give(file);
  }
  return site;
}

const startRacing = async (site: TenantSite, where: 'own files' | 'staged files'): Promise<void> => {
  put(site, 'app.js', racer(path.dirname(path.dirname(fs.realpathSync(site.filesDir))), where));
  await until(async () => (await (await fetch(site.url)).text()) === 'racing', {
    timeoutMs: 60_000,
    what: 'the application',
  });
};

inChaos(
  'row 2: a restore hands over no file of the machine, while the application swaps 200 folders for links',
  async () => {
    const site = await makeRacer('staged.example.com');
    const { id } = await attacker.takeBackup(site.id);
    const before = readCanary();
    for (let attempt = 0; attempt < 20; attempt += 1) {
      await startRacing(site, 'staged files');
      const restore = await attacker.call('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: id });
      if (restore.status < 400) await attacker.follow(restore.location);
      expect(readCanary()).toEqual(before);
      await fetch(new URL('stop', site.url));
    }
  },
);

inChaos(
  'row 3: a backup takes along no file of the machine, while the application swaps 200 folders for links',
  async () => {
    const site = await makeRacer('packed.example.com');
    await startRacing(site, 'own files');
    const backups: string[] = [];
    for (let attempt = 0; attempt < 4; attempt += 1)
      await attacker.takeBackup(site.id).then(
        ({ id }) => backups.push(id),
        () => undefined,
      );
    await fetch(new URL('stop', site.url));
    expect(backups.length).toBeGreaterThan(0);
    for (const backup_id of backups) {
      const restore = await attacker.must('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id });
      await attacker.follow(restore.location);
      // The probe of the restore has started the restored application, which swaps folders until this request.
      await fetch(new URL('stop', site.url));
      const names = fs.readdirSync(site.filesDir, { recursive: true, withFileTypes: true });
      const texts = names
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => fs.readFileSync(path.join(parentPath, name), 'utf8'));
      expect(texts.length).toBeGreaterThan(0);
      expect(texts).not.toContain(secret);
    }
  },
);

inChaos('row 5: an application reads no file of another organisation', async () => {
  put(victimsSite, 'wp-config.php', secret);
  const site = await attacker.makeSite('reader.example.com');
  const wanted = path.join(fs.realpathSync(victimsSite.filesDir), 'wp-config.php');
  put(
    site,
    'app.js',
    `let text = ''; try { text = String(require('fs').readFileSync(${JSON.stringify(wanted)})); } catch {}
    require('http').createServer((_, answer) => answer.end('read:' + text)).listen(1)`,
  );
  const told = await until(
    async () => (await fetch(site.url)).text().then((text) => text.startsWith('read:') && text),
    {
      timeoutMs: 60_000,
    },
  );
  expect(told).toBe('read:');
});

const liftSql = `create function lift() returns text immutable language plpgsql as $$ begin return set_config('statement_timeout', '0', false); end $$;
  create function shout() returns text language plpgsql as
    $$ begin perform set_config('client_min_messages', 'notice', false); raise notice '%', repeat('x', 600000000); return 'said'; end $$;`;

const hugePages = {
  value: "<?sql select repeat('x', 600000000) where lift() is not null ?>",
  notice: '<?sql select shout() where lift() is not null ?>',
};
for (const [name, page] of Object.entries(hugePages))
  inChaos(`row 6: a page with a ${name} of 600 MB ends no site host`, async () => {
    const site = await attacker.makeSite(`huge-${name}.example.com`);
    await sql(site.databaseUrl, liftSql);
    put(site, 'huge.html', page);
    const pid = stack.processes()['site-host']?.pid;
    await fetch(new URL('huge.html', site.url), { signal: AbortSignal.timeout(60_000) }).catch(() => undefined);
    expect(await until(async () => (await fetch(victimsSite.url)).text(), { timeoutMs: 60_000 })).toBe('all is well');
    expect(stack.processes()['site-host']?.pid).toBe(pid);
  });

inChaos(
  'row 7: while four restores sleep in their checks, another organisation’s backup ends before they do',
  async () => {
    const slow = `create function slow(int) returns boolean language plpgsql as $$ begin return true; end $$;
    create table slept (n int check (slow(n))); insert into slept values (1);
    create or replace function slow(int) returns boolean language plpgsql as $$ begin perform pg_sleep(3600); return true; end $$;`;
    const sites = await Promise.all([1, 2, 3, 4].map((n) => attacker.makeSite(`slow-${n}.example.com`)));
    for (const { databaseUrl } of sites) await sql(databaseUrl, slow);
    const restores: string[] = [];
    for (const { id } of sites) {
      const backup = await attacker.takeBackup(id);
      restores.push(
        (await attacker.must('POST', `/v1/sites/${id}/backups/restore`, { backup_id: backup.id })).location,
      );
    }
    let ended = 0;
    const ends = restores.map((location) =>
      attacker.follow(location, 600_000).finally(() => {
        ended += 1;
      }),
    );
    await until(async () => (await attacker.must('GET', restores[3] ?? '')).text.includes('"running"'), {
      timeoutMs: 20_000,
    }).catch(() => undefined);
    await victim.takeBackup(victimsSite.id);
    expect(ended).toBe(0);
    await Promise.all(ends);
  },
);

inChaos(
  'row 8: while four sites hold every session of the cluster that they can get, another organisation’s new site shows its page',
  async () => {
    const sites = await Promise.all([1, 2, 3, 4].map((n) => attacker.makeSite(`greedy-${n}.example.com`)));
    const held: pg.Client[] = [];
    for (const { databaseUrl } of sites)
      for (let n = 0; n < 60; n += 1) {
        const client = new pg.Client({ connectionString: databaseUrl });
        client.on('error', () => undefined);
        await client.connect().then(
          () => held.push(client),
          () => undefined,
        );
      }
    try {
      expect(held.length).toBeGreaterThan(10);
      const newcomer = await victim.makeSite('newcomer.example.org');
      put(newcomer, 'index.html', '<?sql select 7 ?>');
      expect(await (await fetch(newcomer.url)).text()).toBe('7');
    } finally {
      await Promise.all(held.map((client) => client.end().catch(() => undefined)));
    }
  },
);

/** Opens connections and sends `lines` on each. The lines may be only the beginning of a request. */
async function dangle(lines: string[], count: number): Promise<net.Socket[]> {
  const port = Number(new URL(stack.demo.base_url).port);
  const sockets = Array.from({ length: count }, () => net.connect({ port, host: '127.0.0.1' }));
  await Promise.all(
    sockets.map((socket) => {
      socket.on('error', () => undefined).resume();
      return new Promise<void>((resolve) =>
        socket.once('connect', () => socket.write(lines.join('\r\n'), () => resolve())).once('close', resolve),
      );
    }),
  );
  return sockets;
}

const head = (line: string, token: string, more: string[] = []): string[] => [
  `${line} HTTP/1.1`,
  'Host: drydock',
  `Authorization: Bearer ${token}`,
  ...more,
  '',
];

inChaos('row 9: 410 slow bodies of two keys cost nobody else an answer', async () => {
  const keys = [attacker.token, await attacker.mintKey(['sites.create'])];
  const more = ['Content-Type: application/json', 'Content-Length: 500', '', '{'];
  const sockets = (
    await Promise.all(keys.map((key) => dangle(head('POST /v1/sites', key, more).slice(0, -1), 205)))
  ).flat();
  const statuses: number[] = [];
  for (let n = 0; n < 50; n += 1) statuses.push((await victim.call('GET', '/v1/sites')).status);
  for (const socket of sockets) socket.destroy();
  expect(new Set(statuses)).toEqual(new Set([200]));
});

inChaos('row 9: 200 event streams of one key cost nobody else a stream', async () => {
  const ofVictim = await victim.must('POST', `/v1/sites/${victimsSite.id}/backups`, {});
  const site = await attacker.makeSite('streams.example.com');
  await sql(
    site.databaseUrl,
    `create function slow(int) returns boolean language plpgsql as $$ begin return true; end $$;
    create table slept (n int check (slow(n))); insert into slept values (1);
    create or replace function slow(int) returns boolean language plpgsql as $$ begin perform pg_sleep(3600); return true; end $$;`,
  );
  const { id } = await attacker.takeBackup(site.id);
  const { location } = await attacker.must('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: id });
  const sockets = await dangle([...head(`GET ${location}/events`, attacker.token), ''], 200);
  const statuses: number[] = [];
  for (let n = 0; n < 50; n += 1) {
    statuses.push((await victim.call('GET', `/v1/sites/${victimsSite.id}`)).status);
    const response = await fetch(`${stack.demo.base_url}${ofVictim.location}/events`, {
      headers: { authorization: `Bearer ${victim.token}` },
      signal: AbortSignal.timeout(60_000),
    });
    statuses.push(response.status);
    await response.body?.cancel();
  }
  for (const socket of sockets) socket.destroy();
  expect(new Set(statuses)).toEqual(new Set([200]));
});

inChaos(
  'row 10: a neighbour’s page is there although three templates of 720 kB of openings are asked for',
  async () => {
    const site = await attacker.makeSite('quadratic.example.com');
    put(site, 'quadratic.html', '<?sql '.repeat(120_000));
    const asked = [1, 2, 3].map(() =>
      fetch(new URL('quadratic.html', site.url)).then((response) => response.arrayBuffer()),
    );
    // The requests come one after the other, so that some come while the site agent parses the templates. A parser of
    // quadratic time needs 36 s for the three templates. A request that waits for it fails after 20 s.
    for (let n = 0; n < 10; n += 1) {
      const response = await fetch(victimsSite.url, { signal: AbortSignal.timeout(20_000) });
      expect(await response.text()).toBe('all is well');
    }
    await Promise.allSettled(asked);
  },
);

/** Returns the environment variables of a process whose names are those of secrets. */
function secretsOfProcess(name: string): Record<string, string> {
  const text = fs.readFileSync(`/proc/${stack.processes()[name]?.pid}/environ`, 'utf8');
  const lines = text.split('\0').map((line) => line.split(/=(.*)/s));
  return Object.fromEntries(
    lines
      .filter(([variable = '']) => /SECRET|TOKEN|_KEY$|TARGETS/.test(variable))
      .map(([variable, value]) => [variable, value]),
  );
}

for (const service of ['hosting', 'databases', 'compute'])
  inChaos(`row 11: the process that answers for ${service} holds nothing that its worker changes things by`, () => {
    const [api, worker] = [secretsOfProcess(service), secretsOfProcess(`${service}-worker`)];
    const own = ['SERVICE_SECRET', 'INTERNAL_TOKEN_SECRET', 'AUDIT_TOKEN_SECRET'];
    expect(Object.keys(worker).length).toBeGreaterThan(own.length);
    expect(Object.keys(api).filter((name) => !own.includes(name) && api[name] === worker[name])).toEqual([]);
  });

/**
 * Creates a site with an app.js that runs `body`, and requests its page. Resolves with the site and the result of
 * `answer()`, which `body` defines.
 */
async function askApp(domain: string, body: string): Promise<{ site: TenantSite; said: string }> {
  const site = await attacker.makeSite(domain);
  put(
    site,
    'app.js',
    `${body}; const server = require('http').createServer((_, response) => response.end('said ' + answer())).listen(3000);`,
  );
  const said = await until(
    async () => (await fetch(site.url)).text().then((text) => text.startsWith('said ') && text.slice(5)),
    {
      timeoutMs: 60_000,
      what: 'the application',
    },
  );
  return { site, said };
}

inChaos('row 13: an application fills no disk with its log', async () => {
  const { site } = await askApp(
    'log.example.com',
    `for (let n = 0; n < 64; n += 1) require('fs').writeSync(1, Buffer.alloc(65536, 'x')); const answer = () => 'printed'`,
  );
  const folder = path.join(stack.dataDir, 'sites/live', site.id);
  const logs = fs.readdirSync(folder).filter((name) => name.startsWith('app.log'));
  for (const name of logs) expect(fs.statSync(path.join(folder, name)).size).toBeLessThan(2 * 2 ** 20);
});

inChaos('row 13: an application has no port that another process could take after its end', async () => {
  const { said } = await askApp('port.example.com', 'const answer = () => typeof server.address()');
  expect(said).toBe('string');
});

inChaos('row 13: an application takes no more than its share of memory and processes', async () => {
  const { said } = await askApp(
    'hungry.example.com',
    `const { spawnSync } = require('child_process');
    const { status, pid } = spawnSync('/bin/sh', ['-c', 'n=0; while [ $n -lt 400 ]; do sleep 60 & n=$((n+1)); done'], { stdio: 'ignore', detached: true });
    try { process.kill(-pid, 'SIGKILL'); } catch {}
    let memory = 'had'; try { Buffer.alloc(1.5 * 2 ** 30, 1); } catch { memory = 'refused'; }
    const answer = () => (status === 0 ? 'had ' : 'refused ') + memory`,
  );
  expect(said).toBe('refused refused');
});

inChaos('row 13: a restart touches no other name of a file', async () => {
  const site = await attacker.makeSite('linked.example.com');
  put(site, 'app.js', `require('http').createServer((_, response) => response.end('here')).listen(3000)`);
  fs.mkdirSync(path.join(site.filesDir, 'tmp'));
  put(site, 'kept.txt', 'kept');
  fs.utimesSync(path.join(site.filesDir, 'kept.txt'), 1, 1);
  fs.linkSync(path.join(site.filesDir, 'kept.txt'), path.join(site.filesDir, 'tmp/restart.txt'));
  const restart = await attacker.call('POST', `/v1/sites/${site.id}/app/restart`, {});
  if (restart.location !== '') await attacker.follow(restart.location);
  expect(fs.statSync(path.join(site.filesDir, 'kept.txt')).mtimeMs).toBe(1_000);
});

inChaos('row 13: an organisation has no more sites than it may have', async () => {
  const staff = new Tenant(stack, stack.demo.staff_key);
  await staff.call('PUT', `/v1/sites/quota/${stack.demo.org_id}`, { limit: 1 });
  const domain = 'one-too-many.example.com';
  expect((await attacker.call('POST', '/v1/sites', { name: domain, primary_domain: domain })).code).toBe(
    'quota_exceeded',
  );
});
