/**
 * Runs operations of all kinds while each process of a whole stack is killed or frozen, one after the other. `npm run
 * chaos` runs five rounds, and `npm run test:all` runs one.
 *
 * @tier long
 * @processes
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { cardSchema } from '@drydock/contracts/agency/agency-cards';
import { databaseBackupSchema } from '@drydock/contracts/databases/database-backups';
import { managedDatabaseSchema } from '@drydock/contracts/databases/databases';
import { deletedSiteSchema } from '@drydock/contracts/hosting/deleted-sites';
import { siteOffsiteSchema } from '@drydock/contracts/hosting/offsite';
import { vendorSnapshotSurfaceSchema } from '@drydock/contracts/hosting/vendor-snapshots';
import { apiKeySchema } from '@drydock/contracts/keys/api-keys';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { isChaos } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { type Demo, demoSchema } from '../demo/demo-file';
import { Customer } from './customer';
import { Tenant, type TenantDatabase, type TenantSite } from './tenant';
import { type Place, writeVersion } from './versioned-site';

const rounds = isChaos ? 5 : 1;
const outcomeOf = (end: Promise<Ended>): Promise<string> =>
  end.then(
    (ended) => (['answered', 'succeeded'].includes(ended.status) ? 'done' : JSON.stringify(ended)),
    (error: unknown) => String(error),
  );
/** In the chaos run a freeze can outlast the lease of 15 s. A frozen worker that continues has then lost its claim. */
const frozenMs = { least: 500, most: isChaos ? 20_000 : 8_000 };
const pageOf = <T extends z.ZodType>(schema: T) => z.object({ data: z.array(schema) });
type Ended = WorkflowView | { status: 'answered'; body: unknown };

describe('whatever is killed or frozen, while operations of all kinds run', () => {
  let stack: TestStack;
  let demo: Demo;
  let customer: Customer;
  let tenant: Tenant;
  jest.setTimeout(3_600_000);

  beforeAll(async () => {
    stack = await startStack();
    demo = demoSchema.parse(stack.demo);
    customer = new Customer(demo.base_url, demo.live_key);
    tenant = new Tenant(stack, demo.live_key);
  });
  afterAll(() => stack?.stop());

  /**
   * Repeats the call with the same idempotency key until it gets a final answer. If the call starts a workflow, waits
   * for the workflow's end.
   */
  async function carryOut(method: string, at: string, body?: unknown): Promise<Ended> {
    const headers = { 'idempotency-key': randomUUID() };
    const answer = await until(
      async () => {
        const found = await customer.insist(method, at, body, headers);
        return ![409, 429].includes(found.status) && found;
      },
      { timeoutMs: 240_000, everyMs: 200, what: `an answer to ${method} ${at}` },
    );
    if (answer.status >= 400) throw new Error(`${method} ${at} was answered ${answer.status}: ${answer.text}`);
    const location = answer.headers.get('location') ?? '';
    return location.includes('/workflows/') ? customer.follow(location) : { status: 'answered', body: answer.body };
  }

  const placeOf = (site: TenantSite): Place => ({
    url: site.url,
    files_dir: site.filesDir,
    database_url: site.databaseUrl,
  });
  const pageOfSite = async (site: TenantSite): Promise<string> =>
    (await fetch(new URL('version.html', site.url))).text();

  /** Creates a site in the new version, with a backup of the old version. */
  async function makeChangedSite(domain: string): Promise<{ site: TenantSite; backupId: string }> {
    const site = await tenant.makeSite(domain);
    await writeVersion(placeOf(site), 'old');
    const { id: backupId } = await tenant.takeBackup(site.id);
    await writeVersion(placeOf(site), 'new');
    return { site, backupId };
  }

  /** Creates a database with the row `new`, and with a backup that has the row `old`. */
  async function makeChangedDatabase(label: string): Promise<{ database: TenantDatabase; backupId: string }> {
    const database = await tenant.makeDatabase(label, '16');
    await database.query("CREATE TABLE version (v text PRIMARY KEY); INSERT INTO version VALUES ('old')");
    await carryOut('POST', `/v1/databases/${database.id}/backups`, {});
    const { body } = await customer.insist('GET', `/v1/databases/${database.id}/backups`);
    await database.query("UPDATE version SET v = 'new'");
    return { database, backupId: pageOf(databaseBackupSchema).parse(body).data[0]?.id ?? '' };
  }

  const versionOf = async (database: TenantDatabase): Promise<unknown> => {
    const rows = await until(() => database.query('SELECT v FROM version'), {
      timeoutMs: 60_000,
      what: 'an answer of the database',
    });
    return rows.map(({ v }) => v);
  };

  /** Creates everything that the operations of one round need, before a process is killed or frozen. */
  async function prepare(round: number) {
    const [kept, restored, broughtBack, upgraded, restoredDatabase] = await Promise.all([
      tenant.makeSite(`kept-${round}.example.com`),
      makeChangedSite(`restored-${round}.example.com`),
      makeChangedSite(`deleted-${round}.example.com`),
      makeChangedDatabase(`upgraded-${round}`),
      makeChangedDatabase(`restored-${round}`),
    ]);
    await carryOut('DELETE', `/v1/sites/${broughtBack.site.id}`);
    const domain = `deleted-${round}.example.com`;
    const deleted = await until(
      async () => {
        const { data } = pageOf(deletedSiteSchema).parse(
          (await customer.insist('GET', `/v1/sites/deleted?text=${domain}`)).body,
        );
        return data.find(({ primary_domain: found }) => found === domain);
      },
      { timeoutMs: 120_000, what: 'the deleted site' },
    );
    const board = demo.boards?.[0];
    const card = cardSchema.parse(
      (
        await customer.insist('POST', `/v1/agency/boards/${board?.id}/cards`, {
          column_id: board?.column_ids[0],
          title: `Round ${round}`,
        })
      ).body,
    );
    await carryOut('POST', `/v1/agency/boards/${board?.id}/cards/${card.id}/archive`, {});
    const { copies } = siteOffsiteSchema.parse(
      (await customer.insist('GET', `/v1/sites/${demo.offsite_site_id}/offsite`)).body,
    );
    const vendor = `/v1/sites/${demo.vendor_site_id}/vendor-snapshots`;
    const { web } = vendorSnapshotSurfaceSchema.parse((await customer.insist('GET', vendor)).body);
    return {
      kept,
      restored,
      deleted,
      upgraded,
      restoredDatabase,
      card: `/v1/agency/boards/${board?.id}/cards/${card.id}`,
      copyId: copies[0]?.id,
      vendor,
      timestamp: web?.points[0]?.timestamp,
    };
  }

  function begin(round: number, world: Awaited<ReturnType<typeof prepare>>): Record<string, Promise<Ended>> {
    const { kept, restored, deleted, upgraded, restoredDatabase } = world;
    const server = demo.servers?.[0];
    return {
      mint: carryOut('POST', '/v1/api-keys', { name: `round ${round}`, scopes: ['sites.view'] }),
      restore: carryOut('POST', `/v1/sites/${restored.site.id}/backups/restore`, { backup_id: restored.backupId }),
      vendor: carryOut('POST', `${world.vendor}/restore`, { scope: 'web', timestamp: world.timestamp }),
      offsite: carryOut('POST', `/v1/sites/${demo.offsite_site_id}/offsite/restore`, { copy_id: world.copyId }),
      deleted: carryOut('POST', `/v1/sites/deleted/${deleted.id}/restore`),
      restart: carryOut('POST', `/v1/sites/${demo.app_site_id}/app/restart`),
      rollback: carryOut('POST', `/v1/compute/servers/${server?.id}/snapshots/${server?.snapshot_ids[0]}`),
      card: carryOut('POST', `${world.card}/restore`),
      upgrade: carryOut('POST', `/v1/databases/${upgraded.database.id}/upgrade`, { engine_version: '17' }),
      database: carryOut(
        'POST',
        `/v1/databases/${restoredDatabase.database.id}/backups/${restoredDatabase.backupId}/restore`,
        {},
      ),
      backup: carryOut('POST', `/v1/sites/${kept.id}/backups`, {}),
    };
  }

  /** Kills or freezes each process once, in a random order. A frozen process then continues or is killed. */
  async function disturbAll(random: SeededRandom): Promise<string[]> {
    const names = random.pickSome(Object.keys(stack.processes()), Number.POSITIVE_INFINITY);
    const told: string[] = [];
    for (const name of names) {
      const way = random.pick(['kill', 'freeze', 'freeze and kill'] as const);
      told.push(`${name}: ${way}`);
      const { pid } = stack.processes()[name] ?? { pid: 0 };
      if (way !== 'kill') {
        stack.kill(name, 'SIGSTOP');
        await sleep(frozenMs.least + random.below(frozenMs.most - frozenMs.least));
        if (way === 'freeze') process.kill(pid, 'SIGCONT');
      }
      if (way !== 'freeze') {
        process.kill(pid, 'SIGKILL');
        await until(() => ![undefined, pid].includes(stack.processes()[name]?.pid), {
          timeoutMs: 120_000,
          what: `the restart of ${name}`,
        });
      }
      await sleep(random.below(1_000));
    }
    return told;
  }

  const { seed } = sampleOf('kill and freeze', { inCi: rounds, inChaos: rounds });
  const random = new SeededRandom(seed);

  test.each(Array.from({ length: rounds }, (_, round) => round))(
    'round %i: everything ends by itself, as it was or as it was asked for',
    async (round) => {
      const world = await prepare(round);
      const work = begin(round, world);
      const told = await disturbAll(random);
      const ends = await Promise.all(
        Object.entries(work).map(async ([name, end]) => [name, await outcomeOf(end)] as const),
      );
      expect({ told, ...Object.fromEntries(ends) }).toEqual({
        told,
        ...Object.fromEntries(ends.map(([name]) => [name, 'done'])),
      });
      expect(await pageOfSite(world.restored.site)).toBe('old/old');
      expect((await customer.site(world.deleted.site_id)).status).toBe('active');
      expect(await versionOf(world.upgraded.database)).toEqual(['new']);
      expect(await versionOf(world.restoredDatabase.database)).toEqual(['old']);
      const upgraded = managedDatabaseSchema.parse(
        (await customer.insist('GET', `/v1/databases/${world.upgraded.database.id}`)).body,
      );
      expect(upgraded).toMatchObject({ status: 'available', engine_version: '17' });
      expect(cardSchema.parse((await customer.insist('GET', world.card)).body)).toMatchObject({ archived_at: null });
      const keys = pageOf(apiKeySchema).parse((await customer.insist('GET', '/v1/api-keys?limit=100')).body).data;
      expect(keys.filter(({ name }) => name === `round ${round}`)).toHaveLength(1);
    },
  );
});
