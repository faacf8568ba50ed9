/**
 * Starts the whole of Drydock with the program of `npm start`. It is the only suite of a whole stack in `npm test`.
 *
 * @processes
 * @root
 */
import fs from 'node:fs';
import path from 'node:path';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { isSameProcess, type ProcessProof, proveProcess } from '@drydock/process';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { topology } from '../topology';
import { Customer } from './customer';

jest.setTimeout(600_000);

const faults = createFaultTokens();
const options = { faultsDir: faults.folder, environment: { DRYDOCK_DEMO: 'sites' } };

const proofsOf = (stack: TestStack): ProcessProof[] =>
  Object.values(stack.processes()).flatMap(({ pid }) => proveProcess(pid) ?? []);
const isStopped = (pid: number): boolean => /^State:\s+T/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));

describe('npm start', () => {
  let stack: TestStack;
  let customer: Customer;
  let site: TestStack['demo']['sites'][number];
  let backupId: string;
  /** The page of the site as it was backed up. The tests overwrite the page before each restore. */
  let kept: string;

  beforeAll(async () => {
    stack = await startStack(options);
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
    const [first] = stack.demo.sites;
    if (first === undefined) throw new Error('the demo has no site');
    site = first;
    const surface = siteBackupSurfaceSchema.parse((await customer.call('GET', `/v1/sites/${site.id}/backups`)).body);
    backupId = surface.backups.find(({ restorable }) => restorable)?.id ?? '';
    kept = await pageOf(site.url);
  });
  afterAll(async () => {
    await stack?.stop();
    faults.remove();
  });

  const pageOf = async (url: string): Promise<string> => (await fetch(url)).text();
  /** Changes the site, requests its restore and waits until the worker reaches the fault point. */
  const restoreInto = async (point: string, mode: 'stop' | 'kill'): Promise<string> => {
    fs.writeFileSync(path.join(site.files_dir, 'index.html'), 'spoiled');
    expect(await pageOf(site.url)).toBe('spoiled');
    faults.arm(point, mode);
    const accepted = await customer.call('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: backupId });
    expect(accepted.status).toBe(202);
    await until(() => faults.left().length === 0, { timeoutMs: 120_000, what: point });
    return accepted.headers.get('location') ?? '';
  };
  const expectRestored = async (location: string): Promise<void> => {
    expect(await customer.follow(location)).toMatchObject({
      kind: 'restore_backup',
      status: 'succeeded',
      progress: 100,
    });
    expect(await pageOf(site.url)).toBe(kept);
    expect((await customer.site(site.id)).status).toBe('active');
  };

  test('runs every process, and the site of the demo reads its database', () => {
    const names = topology
      .filter(({ isForOldData }) => isForOldData !== true)
      .map(({ name }) => name)
      .filter((name) => name !== 'redis');
    expect(Object.keys(stack.processes())).toEqual(expect.arrayContaining(names));
    expect(kept).toContain('Mooring line');
    expect(backupId).not.toBe('');
    // If the site agent is root, each site has its own account, which owns all files of the site.
    const { uid } = fs.statSync(site.files_dir);
    expect(uid >= 200_000).toBe(process.getuid?.() === 0);
    const paths = fs.readdirSync(site.files_dir, { recursive: true, encoding: 'utf8' });
    expect(paths).toContain('assets/site.css');
    expect(paths.filter((name) => fs.lstatSync(path.join(site.files_dir, name)).uid !== uid)).toEqual([]);
  });

  test('a restore goes on after kill -9 of its worker in the middle of it', async () => {
    const location = await restoreInto('restore_backup.stage.after_effect', 'stop');
    await until(() => isStopped(stack.processes()['hosting-worker']?.pid ?? 0), { what: 'the frozen worker' });
    expect(await pageOf(site.url)).toBe('spoiled');
    await stack.killAndWait('hosting-worker');
    await expectRestored(location);
    const trash = path.join(site.files_dir, '../../../../trash');
    await until(() => fs.readdirSync(trash).length === 0, { timeoutMs: 120_000, what: 'an empty trash' });
    expect(stack.log('site-host')).not.toContain('"level":"error"');
  });

  test('kill -9 of the supervisor leaves no process, and after the next start the restore that was under way succeeds', async () => {
    const location = await restoreInto('restore_backup.switch.after_effect', 'kill');
    const proofs = proofsOf(stack);
    process.kill(stack.supervisorPid, 'SIGKILL');
    await until(() => !proofs.some((proof) => isSameProcess(proof)), {
      timeoutMs: 120_000,
      what: 'the end of every child',
    });
    const again = await startStack({ ...options, dataDir: stack.dataDir });
    try {
      expect(again.demo).toEqual(stack.demo);
      await again.expireLeases('hosting');
      await expectRestored(location);
    } finally {
      const left = proofsOf(again);
      await again.stop();
      expect(left.length).toBeGreaterThan(10);
      expect(left.filter((proof) => isSameProcess(proof))).toEqual([]);
    }
  });
});
