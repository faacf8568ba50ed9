/**
 * Starts the whole of Drydock on each queue backend of this machine and kills processes, one after the other. The first
 * backend has the whole demo content. When root runs the suite, applications have their own accounts.
 *
 * @tier long
 * @processes
 * @root long
 */
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { withDatabase } from '@drydock/postgres/testing/test-cluster';
import { isSameProcess, type ProcessProof, proveProcess } from '@drydock/process';
import { serviceBackends } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { inRepo } from './dev-config';
import { Examples } from './e2e/every-example';
import { topology } from './topology';

const proofsOf = (stack: TestStack): ProcessProof[] =>
  Object.values(stack.processes()).flatMap(({ pid }) => {
    const proof = proveProcess(pid);
    return proof === null ? [] : [proof];
  });

async function listSites(stack: TestStack): Promise<number> {
  const answer = await fetch(`${stack.demo.base_url}/v1/sites`, {
    headers: { authorization: `Bearer ${stack.demo.live_key}` },
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** Only the first backend creates the whole demo, because that takes a minute on a busy machine. */
const [firstBackend] = serviceBackends();

describe.each(serviceBackends())('npm start with the queue on %s', (queueBackend) => {
  const environment = { DRYDOCK_DEMO: queueBackend === firstBackend ? 'whole' : 'sites' };
  let stack: TestStack;
  jest.setTimeout(450_000);

  beforeAll(async () => {
    stack = await startStack({ queueBackend, environment });
  });
  afterAll(() => stack.stop());

  test('every process runs, and the demo sites read their databases', async () => {
    const names = topology
      .filter(({ isForOldData }) => isForOldData !== true)
      .map(({ name }) => name)
      .filter((name) => name !== 'redis' || queueBackend === 'redis');
    expect(Object.keys(stack.processes()).sort()).toEqual(names.sort());
    expect(await listSites(stack)).toBe(200);
    const [shop] = stack.demo.sites;
    const page = await (await fetch(shop?.url ?? '')).text();
    expect(page).toContain('Mooring line');
    expect(fs.statSync(shop?.files_dir ?? '').uid >= 200_000).toBe(process.getuid?.() === 0);
    for (const file of ['demo.json', 'master.key'])
      expect(fs.statSync(path.join(stack.dataDir, file)).mode & 0o777).toBe(0o600);
  });

  test('no process is given the master key or another’s secrets', () => {
    const master = fs.readFileSync(path.join(stack.dataDir, 'master.key'), 'utf8').trim();
    const environments = Object.entries(stack.processes()).map(([name, { pid }]) => [
      name,
      fs.readFileSync(`/proc/${pid}/environ`, 'utf8'),
    ]);
    for (const [, environment] of environments) expect(environment).not.toContain(master);
    const databasesOf = Object.fromEntries(
      environments.map(([name, text]) => [name, /DATABASE_URL=postgresql:\/\/(\w+):/.exec(text ?? '')?.[1]]),
    );
    const loginOf = (database: string): unknown => expect.stringMatching(`^${database}_[0-9a-f]{8}$`);
    expect(databasesOf).toMatchObject({
      keys: loginOf('keys'),
      hosting: loginOf('hosting'),
      'hosting-worker': loginOf('hosting'),
      compute: loginOf('compute'),
      'compute-worker': loginOf('compute'),
      gateway: undefined,
    });
  });

  test('the role of a service enters its own database and no other one of its cluster', async () => {
    const environments = Object.values(stack.processes()).map(({ pid }) =>
      fs.readFileSync(`/proc/${pid}/environ`, 'utf8'),
    );
    const urls = new Set(environments.flatMap((text) => /(?<=\0DATABASE_URL=)[^\0]+/.exec(text) ?? []));
    const names = [...[...urls].map((url) => new URL(url).pathname.slice(1)), 'postgres', 'template1'];
    expect(names.length).toBeGreaterThan(5);
    for (const url of urls)
      for (const name of names) {
        const entered = await runSql(withDatabase(url, name), 'select 1').then(
          () => 'entered',
          ({ code }: { code: string }) => code,
        );
        const role = new URL(url).username;
        expect([role, name, entered]).toEqual([role, name, new URL(url).pathname === `/${name}` ? 'entered' : '42501']);
      }
  });

  const itWith = queueBackend === firstBackend ? test : test.skip;
  itWith(
    'the example of every operation succeeds, but for those of which the contract says what the demo answers',
    async () => {
      const examples = await Examples.read(stack.demo);
      await examples.sendAll();
      expect([...examples.succeeded, ...examples.refused].sort()).toEqual(examples.names);
      // No workflow of a healthy demo waits for staff, so these operations are refused.
      const kinds = ['DeletedSite', 'Database', 'Server', 'Site'];
      const waiting = kinds.flatMap((kind) => [`abandon${kind}Workflow`, `retry${kind}Workflow`]);
      expect([...examples.refused].sort()).toEqual(waiting.sort());
    },
  );

  test('each process comes back after kill -9 where it was, and calls work again', async () => {
    const before = stack.processes();
    // On the second queue only hosting and its worker are killed, as examples of the processes that use the queue. The
    // backend makes no difference to other processes.
    const victims = queueBackend === firstBackend ? Object.keys(before) : ['hosting', 'hosting-worker'];
    for (const name of victims) {
      await stack.killAndWait(name);
      expect(stack.processes()[name]?.port).toBe(before[name]?.port);
    }
    await until(async () => (await listSites(stack)) === 200, { timeoutMs: 120_000, what: 'a working gateway' });
  });

  test('kill -9 of the supervisor leaves no process, and the next start finds its data at the same addresses', async () => {
    const { demo, dataDir, supervisorPid } = stack;
    const proofs = proofsOf(stack);
    process.kill(supervisorPid, 'SIGKILL');
    await until(() => proofs.every((proof) => !isSameProcess(proof)), {
      timeoutMs: 120_000,
      what: 'the end of every child',
    });
    const again = await startStack({ queueBackend, dataDir, environment });
    expect(again.demo).toEqual(demo);
    expect(await listSites(again)).toBe(200);
    expect((await fetch(demo.sites[0]?.url ?? '')).status).toBe(200);
    const left = proofsOf(again);
    await again.stop();
    expect(left.filter((proof) => isSameProcess(proof))).toEqual([]);
  });
});

describe('npm start -- NAME', () => {
  const startSome = (names: readonly string[], dataDir: string) => {
    const child = spawn(process.execPath, [inRepo('infra/dev/dist/start.js'), ...names], {
      env: { ...process.env, CI: '1', DRYDOCK_PORT: '0', DRYDOCK_DATA_DIR: dataDir, DRYDOCK_EPHEMERAL: '1' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const ready = new Promise<void>((resolve) => child.once('message', () => resolve()));
    return { child, exited, ready, said: () => said };
  };
  let dataDir: string;
  beforeEach(() => {
    dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-some-'));
    fs.chmodSync(dataDir, 0o711);
  });
  afterEach(() => fs.rmSync(dataDir, { recursive: true, force: true }));

  test('starts one service with its database and nothing else, and the command that it shows calls it', async () => {
    const { child, exited, ready, said } = startSome(['keys'], dataDir);
    try {
      await Promise.race([ready, exited]);
      const running: Record<string, { port: number }> = JSON.parse(
        fs.readFileSync(path.join(dataDir, 'processes.json'), 'utf8'),
      );
      expect(Object.keys(running).sort()).toEqual(['keys', 'postgres']);
      const url = /curl -s (http:\S+)/.exec(said())?.[1] ?? said();
      expect((await fetch(url)).status).toBe(200);
      expect(said()).toContain('SERVICE=keys npm run dev:call METHOD PATH');
      const call = spawnSync(process.execPath, [inRepo('infra/dev/dist/dev-call.js'), 'GET', '/v1/api-keys'], {
        env: { ...process.env, SERVICE: 'keys', DRYDOCK_DATA_DIR: dataDir },
        encoding: 'utf8',
      });
      expect(call.stderr).toContain('200 from keys');
    } finally {
      child.kill('SIGTERM');
      expect(await exited).toBe(0);
    }
    expect(JSON.parse(fs.readFileSync(path.join(dataDir, 'processes.json'), 'utf8'))).toEqual({});
  });

  test('answers an unknown name with the list of names, and starts nothing', async () => {
    const { exited, said } = startSome(['kyes'], dataDir);
    expect(await exited).toBe(1);
    expect(said()).toMatch(/There is no process "kyes". There are: postgres, .*keys, .*gateway/);
    expect(fs.readdirSync(dataDir)).toEqual([]);
  });
});
