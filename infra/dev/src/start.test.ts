import fs from 'node:fs';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { withDatabase } from '@drydock/postgres/testing/test-cluster';
import { isSameProcess, type ProcessProof, proveProcess } from '@drydock/process/process-proof';
import { queueBackends } from '@drydock/testing/queue-backends';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { programNames } from './programs/domains';

const proofsOf = (stack: TestStack): ProcessProof[] =>
  Object.values(stack.processes()).flatMap(({ pid }) => {
    const proof = proveProcess(pid);
    return proof === null ? [] : [proof];
  });

async function listSites(stack: TestStack): Promise<number> {
  const answer = await fetch(`${stack.demo.base_url}/v1/sites`, { headers: { authorization: `Bearer ${stack.demo.live_key}` } });
  await answer.arrayBuffer();
  return answer.status;
}

/** All of the demo content once; two cores that run other suites beside it need a minute for it. */
const [firstBackend] = queueBackends();

describe.each(queueBackends())('npm start with the queue on %s', (queueBackend) => {
  const environment = { DRYDOCK_DEMO: queueBackend === firstBackend ? 'whole' : 'sites' };
  let stack: TestStack;
  jest.setTimeout(300_000);

  beforeAll(async () => {
    stack = await startStack({ queueBackend, environment });
  });
  afterAll(() => stack.stop());

  test('every process runs, and the demo sites read their databases', async () => {
    const names = [...programNames, 'postgres', 'sites-postgres'];
    expect(Object.keys(stack.processes()).sort()).toEqual((queueBackend === 'redis' ? [...names, 'redis'] : names).sort());
    expect(await listSites(stack)).toBe(200);
    const [shop] = stack.demo.sites;
    const page = await (await fetch(shop?.url ?? '')).text();
    expect(page).toContain('Mooring line');
    expect(fs.statSync(shop?.files_dir ?? '').uid >= 200_000).toBe(process.getuid?.() === 0);
    for (const file of ['demo.json', 'master.key']) expect(fs.statSync(path.join(stack.dataDir, file)).mode & 0o777).toBe(0o600);
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
    expect(databasesOf).toMatchObject({
      keys: 'keys',
      hosting: 'hosting',
      'hosting-worker': 'hosting',
      compute: 'compute',
      'compute-worker': 'compute',
      gateway: undefined,
    });
  });

  test('the role of a service enters its own database and no other one of its cluster', async () => {
    const environments = Object.values(stack.processes()).map(({ pid }) => fs.readFileSync(`/proc/${pid}/environ`, 'utf8'));
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

  test('each process comes back after kill -9 where it was, and calls work again', async () => {
    const before = stack.processes();
    // Only these two know which queue there is.
    const victims = queueBackend === firstBackend ? Object.keys(before) : ['hosting', 'hosting-worker'];
    for (const name of victims) {
      await stack.killAndWait(name);
      expect(stack.processes()[name]?.port).toBe(before[name]?.port);
    }
    await until(async () => (await listSites(stack)) === 200, { timeoutMs: 30_000, what: 'a working gateway' });
  });

  test('kill -9 of the supervisor leaves no process, and the next start finds its data at the same addresses', async () => {
    const { demo, dataDir, supervisorPid } = stack;
    const proofs = proofsOf(stack);
    process.kill(supervisorPid, 'SIGKILL');
    await until(() => proofs.every((proof) => !isSameProcess(proof)), { timeoutMs: 40_000, what: 'the end of every child' });
    const again = await startStack({ queueBackend, dataDir, environment });
    expect(again.demo).toEqual(demo);
    expect(await listSites(again)).toBe(200);
    expect((await fetch(demo.sites[0]?.url ?? '')).status).toBe(200);
    const left = proofsOf(again);
    await again.stop();
    expect(left.filter((proof) => isSameProcess(proof))).toEqual([]);
  });
});
