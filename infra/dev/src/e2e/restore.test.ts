/**
 * Restores a site of 20 MB (200 MB in `npm run chaos`) while processes are killed. In `npm run test:all`
 * whole-stack.test.ts runs this suite on a stack that several suites share.
 *
 * @tier chaos
 * @processes
 */
import fs from 'node:fs';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { problemSchema } from '@drydock/contracts/platform/problems';
import { isChaos, serviceBackends } from '@drydock/testing/scope';
import type { TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { Redis } from 'ioredis';
import { Customer } from './customer';
import { startStack } from './one-stack';
import { digestSite, disturbSite, fillSite, type Place, samplePage, sizes, writeVersion } from './versioned-site';

/** Returns the URL of the queue, which the supervisor gives only to processes that need it, such as hosting. */
const queueUrlOf = (stack: TestStack): string =>
  /(?:^|\0)QUEUE_URL=([^\0]+)/.exec(
    fs.readFileSync(`/proc/${stack.processes()['hosting']?.pid}/environ`, 'utf8'),
  )?.[1] ?? '';

const size = isChaos ? sizes.full : sizes.short;
const atOnce = isChaos ? 50 : 5;
const [firstBackend] = serviceBackends();

describe.each(serviceBackends())('a restore through the whole of Drydock, queue on %s', (queueBackend) => {
  let stack: TestStack;
  let customer: Customer;
  let site: Place & { id: string };
  let backupId: string;
  let backedUp: { tree: string; database: string };
  jest.setTimeout(900_000);

  const restore = () => customer.insist('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: backupId });

  beforeAll(async () => {
    stack = await startStack({ queueBackend, environment: { DRYDOCK_DEMO: 'sites' } });
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
    const [first] = stack.demo.sites;
    if (first === undefined) throw new Error('the demo has no site');
    site = first;
    await fillSite(site, size);
    await writeVersion(site, 'old');
    backupId = await customer.takeBackup(site.id);
    backedUp = await digestSite(site);
  });
  afterAll(() => stack.stop());

  const spoil = async (): Promise<void> => {
    await disturbSite(site);
    await writeVersion(site, 'new');
  };

  test('readers see the new state or the old one at every moment, and the restored site is exactly what was backed up', async () => {
    await spoil();
    const samples = samplePage(new URL('version.html', site.url).href);
    await until(() => samples.bodies.has('new/new'), { what: 'a reader of the new state' });
    const accepted = await restore();
    const workflow = await customer.follow(accepted.headers.get('location') ?? '');
    await until(() => samples.bodies.has('old/old'), { what: 'a reader of the restored state' });
    await samples.stop();
    expect(workflow).toMatchObject({ status: 'succeeded', progress: 100 });
    expect([...samples.bodies].sort()).toEqual(['new/new', 'old/old']);
    // Only the chaos run checks that no read fails and that reads are less than a second apart. In other runs other
    // suites slow the machine down, and a read of more than 5 s counts as failed.
    if (isChaos) {
      expect([...samples.failures]).toEqual([]);
      expect(samples.longestGapMs).toBeLessThan(1_000);
    }
    expect(await digestSite(site)).toEqual(backedUp);
    expect((await customer.site(site.id)).status).toBe('active');
  });

  test('of several restores at once exactly one is accepted, and the others name the one that runs', async () => {
    const answers = await Promise.all(
      Array.from({ length: atOnce }, () =>
        customer.call('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: backupId }),
      ),
    );
    const [winner, ...more] = answers.filter(({ status }) => status === 202);
    expect(more).toEqual([]);
    const location = winner?.headers.get('location') ?? '';
    const refusals = answers.filter(({ status }) => status === 422).map(({ body }) => problemSchema.parse(body));
    expect(refusals.map(({ code }) => code)).toEqual(Array.from({ length: atOnce - 1 }, () => 'operation_in_progress'));
    expect(new Set(refusals.map((refusal) => refusal['workflow_id']))).toEqual(new Set([location.split('/').at(-1)]));
    expect((await customer.follow(location)).status).toBe('succeeded');
  });

  const victims = ['hosting-worker', 'hosting', 'gateway', ...(queueBackend === 'redis' ? ['redis'] : [])];
  test.each(victims)('kill -9 of %s at any moment of a restore loses nothing', async (victim) => {
    // A few moments are enough, because the suites of @drydock/workflow kill at every moment on every backend.
    for (const delayMs of queueBackend === firstBackend ? [0, 150, 600] : [150]) {
      await spoil();
      const accepted = await restore();
      expect(accepted.status).toBe(202);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      await stack.killAndWait(victim);
      const workflow = await customer.follow(accepted.headers.get('location') ?? '');
      expect(workflow.status).toBe('succeeded');
      expect(await digestSite(site)).toEqual(backedUp);
    }
  });

  if (queueBackend === 'redis') {
    test('an emptied queue costs time and no restore', async () => {
      await spoil();
      const accepted = await restore();
      const redis = new Redis(queueUrlOf(stack));
      await redis.flushall();
      redis.disconnect();
      expect((await customer.follow(accepted.headers.get('location') ?? '')).status).toBe('succeeded');
      expect(await digestSite(site)).toEqual(backedUp);
    });
  }

  test('what a restore replaced is a backup of its own, and can be restored in turn', async () => {
    const surface = async () =>
      siteBackupSurfaceSchema.parse((await customer.call('GET', `/v1/sites/${site.id}/backups`)).body);
    await until(async () => !(await surface()).in_progress);
    const replaced = (await surface()).backups.find(
      ({ kind, status }) => kind === 'pre_restore' && status === 'completed',
    );
    const accepted = await customer.call('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: replaced?.id });
    expect((await customer.follow(accepted.headers.get('location') ?? '')).status).toBe('succeeded');
    expect(await (await fetch(new URL('version.html', site.url))).text()).toBe('new/new');
  });
});
