/**
 * Puts the databases of a whole stack back to earlier moments, as after a restore from their backups.
 *
 * @tier long
 * @processes
 */
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { siteOffsiteSchema } from '@drydock/contracts/hosting/offsite';
import { vendorSnapshotSurfaceSchema } from '@drydock/contracts/hosting/vendor-snapshots';
import { isChaos } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import fc from 'fast-check';
import pg from 'pg';
import { z } from 'zod';
import { Customer } from './customer';
import { type Moment, putBack, readMoment } from './database-moment';
import { type Place, writeVersion } from './versioned-site';

const demoSchema = z.looseObject({
  offsite_site_id: z.string(),
  vendor_site_id: z.string(),
  servers: z
    .tuple([z.looseObject({ id: z.string(), snapshot_ids: z.tuple([z.string()]).rest(z.string()) })])
    .rest(z.unknown()),
  databases: z.tuple([z.looseObject({ id: z.string() })]).rest(z.unknown()),
});

/** The services with a database. Each database goes back to a moment of its own. */
const services = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
/** The services that run workflows. */
const working = ['hosting', 'compute', 'databases'] as const;
const moments = isChaos ? 50 : 1;
/**
 * The longest time in milliseconds from the start of the operations until a database is read. It is slightly longer
 * than the longest operation, so that a database can be read at any moment of each operation and after it.
 */
const spanMs = 15_000;

describe('Drydock, put back to a backup of its own databases while its hosts have gone on', () => {
  let stack: TestStack;
  let customer: Customer;
  let demo: z.infer<typeof demoSchema>;
  let sites: (Place & { id: string })[];
  const backupIds = new Map<string, string>();
  let databaseBackupId: string;
  jest.setTimeout(3_600_000);

  beforeAll(async () => {
    stack = await startStack();
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
    demo = demoSchema.parse(stack.demo);
    sites = stack.demo.sites;
    for (const site of sites) {
      await writeVersion(site, 'old');
      backupIds.set(site.id, await customer.takeBackup(site.id));
    }
    const at = `/v1/databases/${demo.databases[0].id}/backups`;
    const { status } = await customer.carryOut('POST', at, {});
    if (status !== 'succeeded') throw new Error(`the backup of the database ended as ${status}`);
    const listed = z.object({ data: z.tuple([z.object({ id: z.string() })]).rest(z.unknown()) });
    databaseBackupId = listed.parse((await customer.insist('GET', at)).body).data[0].id;
  });
  afterAll(() => stack?.stop());

  const urlOf = (service: string): string => {
    const environment = fs.readFileSync(`/proc/${stack.processes()[service]?.pid}/environ`, 'utf8');
    return /(?:^|\0)DATABASE_URL=([^\0]+)/.exec(environment)?.[1] ?? '';
  };
  const rowsOf = async (url: string, sql: string): Promise<unknown[]> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  };

  /**
   * Starts an operation of each kind that changes something at an agent or provider. Returns how many were accepted.
   * Some may be refused, because other work locks their resource.
   */
  async function beginAll(): Promise<number> {
    const { copies } = siteOffsiteSchema.parse(
      (await customer.insist('GET', `/v1/sites/${demo.offsite_site_id}/offsite`)).body,
    );
    const vendor = `/v1/sites/${demo.vendor_site_id}/vendor-snapshots`;
    const { web } = vendorSnapshotSurfaceSchema.parse((await customer.insist('GET', vendor)).body);
    const [server] = demo.servers;
    const answers = await Promise.all([
      ...sites.map(({ id }) =>
        customer.insist('POST', `/v1/sites/${id}/backups/restore`, { backup_id: backupIds.get(id) }),
      ),
      customer.insist('POST', `/v1/sites/${demo.offsite_site_id}/offsite/restore`, { copy_id: copies[0]?.id }),
      customer.insist('POST', `${vendor}/restore`, { scope: 'web', timestamp: web?.points[0]?.timestamp }),
      customer.insist('POST', `/v1/compute/servers/${server.id}/snapshots/${server.snapshot_ids[0]}`),
      customer.insist('POST', `/v1/databases/${demo.databases[0].id}/backups/${databaseBackupId}/restore`, {}),
    ]);
    return answers.filter(({ status }) => status === 202).length;
  }

  /** Freezes the control plane. Agents and providers go on with the work that they have begun. */
  function freeze(): string[] {
    const names = Object.keys(stack.processes()).filter(
      (name) => name === 'gateway' || services.some((service) => name.replace(/-worker$/, '') === service),
    );
    for (const name of names) stack.kill(name, 'SIGSTOP');
    return names;
  }

  test(`at a random moment, another one for each service (${moments} times): everything ends without staff, and every site is whole and unlocked`, async () => {
    const delays = fc.sample(
      fc.record({ read: fc.array(fc.nat(spanMs), { minLength: 5, maxLength: 5 }), more: fc.nat(spanMs) }),
      moments,
    );
    let begun = 0;
    for (const { read, more } of delays) {
      const told = JSON.stringify({ read, more });
      for (const site of sites) await writeVersion(site, 'new');
      begun += await beginAll();
      const taken = services.map(async (service, index): Promise<[string, Moment]> => {
        await sleep(read[index]);
        return [service, await readMoment(urlOf(service))];
      });
      const backups = await Promise.all(taken);
      await sleep(more);
      const urls = new Map(services.map((service) => [service as string, urlOf(service)]));
      const frozen = freeze();
      for (const [service, moment] of backups) await putBack(urls.get(service) ?? '', moment);
      for (const name of frozen) stack.kill(name, 'SIGKILL');
      const unfinished = () => Promise.all(working.map((service) => rowsOf(urls.get(service) ?? '', unfinishedSql)));
      await until(async () => (await unfinished()).flat().length === 0, {
        timeoutMs: 240_000,
        everyMs: 500,
        what: `the end of all work (${told})`,
      }).catch(async (error: unknown) => {
        throw new Error(`${String(error)}: ${JSON.stringify(await unfinished())}`);
      });
      const parked = await Promise.all(working.map((service) => rowsOf(urls.get(service) ?? '', parkedSql)));
      expect({ told, parked: parked.flat() }).toEqual({ told, parked: [] });
      for (const site of sites) {
        const page = async () => (await fetch(new URL('version.html', site.url))).text();
        expect({ told, status: (await customer.site(site.id)).status, page: await page() }).toEqual({
          told,
          status: 'active',
          page: expect.stringMatching(/^(?:old\/old|new\/new)$/),
        });
      }
    }
    expect(begun).toBeGreaterThan(3 * moments);
  });
});

const isAskedFor = `kind NOT IN ('check_serving', 'reconcile_servers', 'sweep_backups', 'expire_backups', 'restore_drill', 'check_immutability')`;
const unfinishedSql = `SELECT kind, status, direction, error FROM workflow WHERE status IN ('queued', 'running') AND ${isAskedFor}`;
const parkedSql = `SELECT kind, error, error_internal FROM workflow WHERE status = 'needs_attention'`;
