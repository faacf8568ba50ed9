/**
 * @processes
 * @root
 */
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { accountIn, type Kind, kinds, ownerOf, removeCompiled, runAs, startAs } from '../test/run-as';
import { BoxError, spawnInBox } from './box';
import { isSameProcess, proveProcess } from './end-process';
import { detectIsolation } from './isolation';

const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-box-'));
chmodSync(folder, 0o711);
afterAll(() => {
  removeCompiled();
  rmSync(folder, { recursive: true, force: true });
});

function makeFolder(name: string, uid: number): string {
  const made = path.join(folder, name);
  mkdirSync(made, { mode: 0o700 });
  if (process.getuid?.() === 0) chownSync(made, uid, uid);
  return made;
}

const system = ['bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'proc', 'sbin', 'tmp', 'usr'];

describe.each(kinds)('a box by %s', (kind: Kind) => {
  test('shows system folders and its mounts, but no other process and nothing of its parent', async () => {
    const site = makeFolder(`seen-${kind}`, accountIn(kind));
    const look = `const fs = require('fs');
      const attempt = (work) => { try { return String(work()); } catch (error) { return error.code; } };
      console.log(JSON.stringify({ root: fs.readdirSync('/'), tmp: fs.readdirSync('/tmp'), uid: process.getuid(), env: Object.keys(process.env).sort(),
        processes: fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && Number(name) !== process.pid).length,
        parent: attempt(() => fs.readFileSync('/proc/' + process.ppid + '/environ')), init: attempt(() => fs.readFileSync('/proc/1/environ')),
        canary: attempt(() => fs.readFileSync('${folder}/canary')), shadow: attempt(() => fs.readFileSync('/etc/shadow')),
        status: fs.readFileSync('/proc/self/status', 'utf8').match(/^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs):.*$/gm) }))`;
    writeFileSync(path.join(folder, 'canary'), 'canary', { mode: 0o600 });
    if (process.getuid?.() === 0) chownSync(path.join(folder, 'canary'), ownerOf(kind), ownerOf(kind));
    const script = `const mounts = [{ from: '${site}', to: '/site', writable: false }];
      console.log((await inBox(${JSON.stringify(look)}, { mounts, env: { GIVEN: 'x' } })).text);`;
    const seen = (await runAs(kind, script, { SECRET_OF_PARENT: 'canary' })) as { root: string[] };
    expect(seen.root.filter((name) => !system.includes(name) && !process.execPath.startsWith(`/${name}/`))).toEqual([
      'site',
    ]);
    const nothing = 'CapInh CapPrm CapEff CapBnd CapAmb'.split(' ').map((name) => `${name}:\t0000000000000000`);
    expect(seen).toMatchObject({ tmp: [], uid: accountIn(kind), processes: 0, canary: 'ENOENT', shadow: 'ENOENT' });
    expect(seen).toMatchObject({ parent: 'ENOENT', init: 'ENOENT', status: [...nothing, 'NoNewPrivs:\t1'] });
    expect(seen).toMatchObject({ env: ['GIVEN'] });
  });

  test('its own network has only a loopback, and the given listeners accept connections from the box', async () => {
    const look = `const [net, fs] = [require('net'), require('fs')];
      const say = (options) => new Promise((resolve) => net.connect(options).on('data', (data) => resolve(String(data))).on('error', ({ code }) => resolve(code)));
      const bind = (port) => new Promise((resolve) => net.createServer().listen(port, () => resolve('taken')).on('error', ({ code }) => resolve(code)));
      (async () => console.log(JSON.stringify({ said: await say({ port: 25000, host: '127.0.0.1' }), machine: await say({ port: MACHINE, host: '127.0.0.1' }),
        given: await bind(25000), privileged: await bind(1000), interfaces: fs.readFileSync('/proc/net/dev', 'utf8').match(/\\w+(?=:)/g),
        env: Object.keys(process.env) })))()`;
    const script = `const net = require('net');
      const machine = net.createServer((socket) => socket.end('machine')).listen(0, '127.0.0.1');
      await new Promise((resolve) => machine.once('listening', resolve));
      const look = ${JSON.stringify(look)}.replace('MACHINE', machine.address().port);
      const child = await box({ command: [process.execPath, '-e', look], ownNetwork: { ports: [25000, 1023] } });
      child.listeners.get(25000).on('connection', (socket) => socket.end('handed over'));
      let text = '';
      child.process.stdout.on('data', (part) => { text += part; });
      await new Promise((resolve) => child.process.once('close', resolve));
      machine.close();
      console.log(JSON.stringify({ ...JSON.parse(text), listening: child.listeners.get(25000).listening, ports: [...child.listeners.keys()] }));`;
    expect(await runAs(kind, script)).toEqual({
      said: 'handed over',
      machine: 'ECONNREFUSED',
      given: 'EADDRINUSE',
      privileged: 'EACCES',
      interfaces: ['lo'],
      env: [],
      listening: false,
      ports: [25000, 1023],
    });
  });

  test('has only the descriptors that it was given, whatever its parent has inherited', async () => {
    const file = path.join(folder, `inherited-${kind}`);
    writeFileSync(file, 'canary');
    const fd = openSync(file, 'r');
    const look = 'for fd in /proc/self/fd/*; do [ -f "$fd" ] && echo "$fd"; done; exit 0';
    const script = `const child = await box({ command: ['/bin/sh', '-c', ${JSON.stringify(look)}] });
      let text = '';
      child.process.stdout.on('data', (part) => { text += part; });
      await new Promise((resolve) => child.process.once('close', resolve));
      console.log(JSON.stringify({ text, here: fs.readFileSync(21, 'utf8') }));`;
    const seen = await runAs(kind, `const fs = require('fs'); ${script}`, {}, { 3: fd, 21: fd });
    closeSync(fd);
    expect(seen).toEqual({ text: '', here: 'canary' });
  });

  test('hides the keys and locks of the machine', async () => {
    const look = `const fs = require('fs'); console.log(JSON.stringify(['keys', 'key-users', 'locks', 'kallsyms'].map((name) => {
      try { return fs.readFileSync('/proc/' + name, 'utf8'); } catch { return ''; } })))`;
    const script = `console.log((await inBox(${JSON.stringify(look)})).text)`;
    expect(await runAs(kind, script)).toEqual(['', '', '', '']);
  });

  test('cannot create a user namespace, in which it would be root', async () => {
    const script = `const command = ['/bin/sh', '-c', 'unshare --user --map-root-user true 2>/dev/null && echo made; id -u'];
      const child = await box({ command, env: { PATH: '/usr/bin:/bin' }, isLastNamespace: true });
      let text = '';
      child.process.stdout.on('data', (part) => { text += part; });
      await new Promise((resolve) => child.process.once('close', resolve));
      console.log(JSON.stringify(text));`;
    expect(await runAs(kind, script)).toBe(`${accountIn(kind)}\n`);
  });

  test('can write only to /tmp and writable mounts', async () => {
    const mine = makeFolder(`mine-${kind}`, accountIn(kind));
    const shown = makeFolder(`shown-${kind}`, accountIn(kind));
    const look = `const fs = require('fs'); const attempt = (file) => { try { fs.writeFileSync(file, 'x'); return 'written'; } catch (error) { return error.code; } };
      console.log(JSON.stringify(['/mine/x', '/shown/x', '/tmp/x', '/x', '/usr/x', '/etc/x', '/dev/x'].map(attempt)))`;
    const script = `const mounts = [{ from: '${mine}', to: '/mine', writable: true }, { from: '${shown}', to: '/shown', writable: false }];
      console.log((await inBox(${JSON.stringify(look)}, { mounts })).text);`;
    const [own, readOnly, tmp, ...rest] = (await runAs(kind, script)) as string[];
    expect([own, readOnly, tmp]).toEqual(['written', 'EROFS', 'written']);
    expect(rest.filter((answer) => answer !== 'EROFS' && answer !== 'EACCES')).toEqual([]);
    expect(readFileSync(path.join(mine, 'x'), 'utf8')).toBe('x');
  });

  test('passes exit codes, signals and descriptors on', async () => {
    const script = `
      const code = (await inBox('process.exit(7)')).exit;
      const own = (await inBox('process.kill(process.pid, "SIGKILL"); setInterval(() => undefined, 1000)')).exit;
      const child = await box({ command: [process.execPath, '-e', 'process.on("SIGTERM", () => process.exit(3)); require("fs").writeSync(1, "ready"); setInterval(() => undefined, 1000)'] });
      await new Promise((resolve) => child.process.stdout.once('data', resolve));
      await child.stop('SIGTERM', 20000);
      const echo = await box({ command: ['/bin/sh', '-c', 'read -r line; echo "$line" >&4'], stdio: ['pipe', 'ignore', 'inherit', 'ignore', 'pipe'] });
      echo.process.stdin.end('carried\\n');
      const carried = await new Promise((resolve) => echo.process.stdio[4].once('data', (part) => resolve(String(part))));
      console.log(JSON.stringify({ code, own, stopped: await child.exited, carried, echo: await echo.exited }));`;
    expect(await runAs(kind, script)).toEqual({
      code: { code: 7, signal: null },
      own: { code: null, signal: 'SIGKILL' },
      stopped: { code: 3, signal: null },
      carried: 'carried\n',
      echo: { code: 0, signal: null },
    });
  });

  test('a command that ignores the signal is killed after the grace period, with all its processes', async () => {
    const script = `const child = await box({ command: ['/bin/sh', '-c', 'trap "" TERM; setsid sleep 61 & echo ready; while :; do sleep 1; done'] });
      await new Promise((resolve) => child.process.stdout.once('data', resolve));
      await child.stop('SIGTERM', 100);
      console.log(JSON.stringify([await child.exited, require('fs').existsSync('/proc/' + child.proof.pid)]));`;
    expect(await runAs(kind, script)).toEqual([{ code: null, signal: 'SIGKILL' }, false]);
  });

  test('all its processes end when its parent is killed with -9, even those in other process groups', async () => {
    const mark = `${61 + Math.floor(Math.random() * 1e6)}.${process.pid}`;
    const parent = startAs(
      kind,
      `const child = await box({ command: ['/bin/sh', '-c', 'setsid sleep ${mark} & exec sleep 62'] }); console.log(child.proof.pid); setInterval(() => undefined, 1000);`,
    );
    const [line]: unknown[] = parent.stdout ? await once(parent.stdout, 'data') : [];
    const proof = proveProcess(Number(String(line)));
    if (proof === null) throw new Error('the command is not there');
    const pids = (): number[] => listCommands(mark);
    while (pids().length === 0) await sleep(20);
    if (ownerOf(kind) === process.getuid?.()) parent.kill('SIGKILL');
    else process.kill(parent.pid ?? 0, 'SIGKILL');
    const until = performance.now() + 10_000;
    while ((isSameProcess(proof) || pids().length > 0) && performance.now() < until) await sleep(20);
    expect([isSameProcess(proof), pids()]).toEqual([false, []]);
  });

  test('is killed before any process outside of boxes if the machine has no memory left', async () => {
    const look = `console.log(require('fs').readFileSync('/proc/self/oom_score_adj', 'utf8'))`;
    expect(await runAs(kind, `console.log((await inBox(${JSON.stringify(look)})).text)`)).toBe(1000);
  });

  test('limits hold: memory, processes, size of a file', async () => {
    const look = `const fs = require('fs'); const { spawnSync } = require('child_process');
      let file = 'written'; process.on('SIGXFSZ', () => undefined);
      try { fs.writeFileSync('/tmp/large', Buffer.alloc(2 ** 21)); } catch (error) { file = error.code; }
      let memory = 'had'; try { Buffer.alloc(2 ** 30, 1); } catch { memory = 'refused'; }
      const children = spawnSync('/bin/sh', ['-c', 'n=0; while [ $n -lt 99 ]; do sleep 1 & n=$((n+1)); done'], { encoding: 'utf8' });
      console.log(JSON.stringify([file, memory, children.status !== 0]))`;
    const limits = '{ memoryBytes: 2 ** 29, processes: 40, fileBytes: 2 ** 20 }';
    const script = `console.log((await inBox(${JSON.stringify(look)}, { env: { PATH: '/usr/bin:/bin' }, limits: ${limits} })).text)`;
    expect(await runAs(kind, script)).toEqual(['EFBIG', 'refused', true]);
  });
});

function listCommands(mark: string): number[] {
  const { execFileSync } = require('node:child_process') as typeof import('node:child_process');
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.trim().endsWith(`sleep ${mark}`)).map((line) => Number.parseInt(line, 10));
}

test('text in a path or an argument is never run as a command', async () => {
  const isolation = await detectIsolation();
  const isRoot = process.getuid?.() === 0;
  const odd = makeFolder(`odd $(touch struck) ; 'x" %`, isRoot ? 200_001 : (process.getuid?.() ?? 0));
  const child = await spawnInBox({
    isolation,
    command: ['/bin/sh', '-c', 'printf %s "$1" > "$2"/told', 'sh', '$(touch /tmp/x); `id`', `/odd $(id) "'`],
    env: { PATH: '/usr/bin:/bin' },
    account: isRoot ? 200_001 : null,
    mounts: [{ from: odd, to: `/odd $(id) "'`, writable: true }],
    workdir: '/',
    stdio: 'ignore',
    onOrphan: 'SIGKILL',
  });
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect(readFileSync(path.join(odd, 'told'), 'utf8')).toBe('$(touch /tmp/x); `id`');
});

test('options that would act outside of the box are refused: variables of the tools, overlapping mounts', async () => {
  const isolation = await detectIsolation();
  const base = {
    isolation,
    command: ['/bin/true'],
    account: 200_001,
    workdir: '/',
    stdio: 'ignore',
    onOrphan: 'SIGKILL',
  } as const;
  for (const name of ['LD_PRELOAD', 'BASH_ENV', 'ENV', '_box_path', 'A B', 'A=B']) {
    await expect(spawnInBox({ ...base, env: { [name]: 'x' }, mounts: [] })).rejects.toThrow(BoxError);
  }
  for (const places of [
    ['/etc'],
    ['/usr/share/x'],
    ['/'],
    ['/site/../etc'],
    ['site'],
    ['/site', '/site/x'],
    ['/site', '/site'],
  ]) {
    const mounts = places.map((to) => ({ from: folder, to, writable: false }));
    await expect(spawnInBox({ ...base, env: {}, mounts })).rejects.toThrow(BoxError);
  }
  await expect(spawnInBox({ ...base, isolation: { kind: 'none', reason: 'no' }, env: {}, mounts: [] })).rejects.toThrow(
    'no box can be made here',
  );
});

const asRoot = process.getuid?.() === 0 ? test : test.skip;
asRoot("rights of a box reach other accounts' files in its mounts, and nothing else (as root)", async () => {
  const isolation = await detectIsolation();
  const shown = makeFolder('rights', 0);
  const readOnly = makeFolder('rights-read-only', 0);
  for (const place of [shown, readOnly]) writeFileSync(path.join(place, 'file'), '', { mode: 0o600 });
  const script = `grep -h ^Cap /proc/self/status > /tmp/caps; rm /shown/file; rm /read-only/file; echo other > /proc/sys/kernel/hostname
    cat /tmp/caps > /shown/told`;
  const options = {
    isolation,
    command: ['/bin/sh', '-c', script],
    env: { PATH: '/usr/bin:/bin' },
    account: 200_001,
    rights: ['dac_override', 'fowner'],
    mounts: [
      { from: shown, to: '/shown', writable: true },
      { from: readOnly, to: '/read-only', writable: false },
    ],
    workdir: '/',
    stdio: 'ignore',
    onOrphan: 'SIGKILL',
  } as const;
  const hostname = os.hostname();
  const child = await spawnInBox(options);
  await child.exited;
  const only = 'CapInh CapPrm CapEff CapBnd CapAmb'.split(' ').map((name) => `${name}:\t000000000000000a\n`);
  expect(readFileSync(path.join(shown, 'told'), 'utf8')).toBe(only.join(''));
  expect([existsSync(path.join(shown, 'file')), existsSync(path.join(readOnly, 'file')), os.hostname()]).toEqual([
    false,
    true,
    hostname,
  ]);
  await expect(spawnInBox({ ...options, isolation: { kind: 'user_namespaces' }, account: null })).rejects.toThrow(
    'only root has rights',
  );
});

test('a box that cannot be created reports the reason', async () => {
  const isolation = await detectIsolation();
  const account = process.getuid?.() === 0 ? 200_001 : null;
  const mounts = [{ from: path.join(folder, 'missing'), to: '/site', writable: false }];
  const options = {
    isolation,
    command: ['/bin/true'],
    env: {},
    account,
    mounts,
    workdir: '/',
    stdio: 'ignore',
    onOrphan: 'SIGKILL',
  } as const;
  await expect(spawnInBox(options)).rejects.toThrow(/could not be made.*missing/s);
});
