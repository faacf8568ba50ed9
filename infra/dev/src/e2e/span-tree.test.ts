/**
 * Kills a process during or just before a call of each of the ten operations, on a whole stack. The trace must still
 * contain the spans up to the end of the operation.
 *
 * @tier long
 * @processes
 */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { siteOffsiteSchema } from '@drydock/contracts/hosting/offsite';
import { vendorSnapshotSurfaceSchema } from '@drydock/contracts/hosting/vendor-snapshots';
import { faultTokenName } from '@drydock/process';
import { isChaos, queueBackends } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { type Collector, startCollector } from './collector';
import { type Answer, Customer } from './customer';
import { spanTree } from './span-tree';

const demoSchema = z.looseObject({
  sites: z.tuple([z.looseObject({ id: z.string() })]).rest(z.unknown()),
  app_site_id: z.string(),
  offsite_site_id: z.string(),
  vendor_site_id: z.string(),
  deleted_sites: z.looseObject({ restorable: z.string() }),
  servers: z
    .tuple([z.looseObject({ id: z.string(), snapshot_ids: z.tuple([z.string()]).rest(z.string()) })])
    .rest(z.unknown()),
  boards: z.tuple([z.looseObject({ id: z.string(), archived_card_ids: z.tuple([z.string()]).rest(z.string()) })]),
  databases: z.tuple([z.looseObject({ id: z.string() })]).rest(z.unknown()),
});
type Demo = z.infer<typeof demoSchema>;

interface Call {
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
}

interface Endpoint {
  what: string;
  /** The process that is killed. */
  victim: string;
  /** The fault point at which the victim dies. Without a point, the victim is killed just before the call. */
  point?: string;
  call(demo: Demo, customer: Customer): Call | Promise<Call>;
  /** The expected lines of {@link spanTree}, without the spans of the killed process and all spans below them. */
  tree: string;
}

const surfaceOf = async (customer: Customer, siteId: string) =>
  siteBackupSurfaceSchema.parse((await customer.insist('GET', `/v1/sites/${siteId}/backups`)).body);

const endpoints: readonly Endpoint[] = [
  {
    what: '1, a mint',
    victim: 'keys',
    point: 'accept.before_commit',
    call: () => ({ method: 'POST', path: '/v1/api-keys', body: { name: 'traced', scopes: ['sites.view'] } }),
    tree: `
gateway: POST /v1/api-keys
  keys: POST /v1/api-keys`,
  },
  {
    what: '2, the list of keys',
    victim: 'keys',
    call: () => ({ method: 'GET', path: '/v1/api-keys' }),
    tree: `
gateway: GET /v1/api-keys
  keys: GET /v1/api-keys`,
  },
  {
    what: '3, a restore from a backup',
    victim: 'hosting-worker',
    point: 'restore_backup.switch.before',
    call: async ({ sites: [site] }, customer) => {
      const [backup] = (await surfaceOf(customer, site.id)).backups;
      return { method: 'POST', path: `/v1/sites/${site.id}/backups/restore`, body: { backup_id: backup?.id } };
    },
    tree: `
gateway: POST /v1/sites/{siteId}/backups/restore
  hosting: POST /v1/sites/{siteId}/backups/restore
    hosting-worker: add hosting.restore_backup
      hosting-worker: process hosting
        hosting-worker: run restore_backup
          hosting-worker: restore_backup.switch
            site-host: POST /control/sites/{id}/switch
          hosting-worker: restore_backup.probe
            site-host: POST /control/sites/{id}/probe
          hosting-worker: restore_backup.thaw
            site-host: POST /control/sites/{id}/thaw
          hosting-worker: restore_backup.pack_safety_copy
            hosting-worker: site_host.pack
              site-host: PUT /control/sites/{id}/jobs/{id}
          hosting-worker: restore_backup.verify_safety_copy
            hosting-worker: backup.verify
          hosting-worker: restore_backup.retire
            site-host: DELETE /control/sites/{id}/releases/{id}`,
  },
  {
    what: "4, a vendor's restore",
    victim: 'hosting-worker',
    point: 'vendor_restore.follow.before',
    call: async ({ vendor_site_id: siteId }, customer) => {
      const { web } = vendorSnapshotSurfaceSchema.parse(
        (await customer.insist('GET', `/v1/sites/${siteId}/vendor-snapshots`)).body,
      );
      const body = { scope: 'web', timestamp: web?.points[0]?.timestamp };
      return { method: 'POST', path: `/v1/sites/${siteId}/vendor-snapshots/restore`, body };
    },
    tree: `
gateway: POST /v1/sites/{siteId}/vendor-snapshots/restore
  hosting: POST /v1/sites/{siteId}/vendor-snapshots/restore
    hosting-worker: add hosting.vendor_restore
      hosting-worker: process hosting
        hosting-worker: run vendor_restore
          hosting-worker: vendor_restore.follow`,
  },
  {
    what: "5, a restore from the customer's storage",
    victim: 'hosting-worker',
    point: 'restore_offsite.stage.before',
    call: async ({ offsite_site_id: siteId }, customer) => {
      const { copies } = siteOffsiteSchema.parse((await customer.insist('GET', `/v1/sites/${siteId}/offsite`)).body);
      return { method: 'POST', path: `/v1/sites/${siteId}/offsite/restore`, body: { copy_id: copies[0]?.id } };
    },
    tree: `
gateway: POST /v1/sites/{siteId}/offsite/restore
  hosting: POST /v1/sites/{siteId}/offsite/restore
    hosting-worker: add hosting.restore_offsite
      hosting-worker: process hosting
        hosting-worker: run restore_offsite
          hosting-worker: restore_offsite.stage
            hosting-worker: site_host.stage
              site-host: PUT /control/sites/{id}/jobs/{id}
          hosting-worker: restore_offsite.clear
          hosting-worker: restore_offsite.prove_safety_copy
            site-host: POST /control/sites/{id}/probe
            hosting-worker: site_host.pack
              site-host: PUT /control/sites/{id}/jobs/{id}
          hosting-worker: restore_offsite.freeze
            site-host: POST /control/sites/{id}/freeze
          hosting-worker: restore_offsite.switch
            site-host: POST /control/sites/{id}/switch
          hosting-worker: restore_offsite.probe
            site-host: POST /control/sites/{id}/probe
          hosting-worker: restore_offsite.thaw
            site-host: POST /control/sites/{id}/thaw
          hosting-worker: restore_offsite.pack_safety_copy
            hosting-worker: site_host.pack
              site-host: PUT /control/sites/{id}/jobs/{id}
          hosting-worker: restore_offsite.verify_safety_copy
            hosting-worker: backup.verify
          hosting-worker: restore_offsite.retire
            site-host: DELETE /control/sites/{id}/releases/{id}`,
  },
  {
    what: '6, a restore of a deleted site',
    victim: 'hosting-worker',
    point: 'restore_deleted_site.switch.before',
    call: (demo) => ({ method: 'POST', path: `/v1/sites/deleted/${demo.deleted_sites.restorable}/restore` }),
    tree: `
gateway: POST /v1/sites/deleted/{deletedSiteId}/restore
  hosting: POST /v1/sites/deleted/{deletedSiteId}/restore
    hosting-worker: add hosting.restore_deleted_site
      hosting-worker: process hosting
        hosting-worker: run restore_deleted_site
          hosting-worker: restore_deleted_site.switch
            site-host: POST /control/sites/{id}/freeze
            site-host: POST /control/sites/{id}/switch
          hosting-worker: restore_deleted_site.probe
            site-host: POST /control/sites/{id}/probe
          hosting-worker: restore_deleted_site.thaw
            site-host: POST /control/sites/{id}/thaw
          hosting-worker: restore_deleted_site.retire
            site-host: DELETE /control/sites/{id}/releases/{id}`,
  },
  {
    what: '7, a restart of an application',
    victim: 'hosting-worker',
    point: 'restart_app.confirm.before',
    call: (demo) => ({ method: 'POST', path: `/v1/sites/${demo.app_site_id}/app/restart` }),
    tree: `
gateway: POST /v1/sites/{siteId}/app/restart
  hosting: POST /v1/sites/{siteId}/app/restart
    hosting-worker: add hosting.restart_app
      hosting-worker: process hosting
        hosting-worker: run restart_app
          hosting-worker: restart_app.confirm
            site-host: POST /control/sites/{id}/probe`,
  },
  {
    what: '8, a rollback of a server',
    victim: 'compute-worker',
    point: 'roll_back_server.follow.before',
    call: ({ servers: [server] }) => ({
      method: 'POST',
      path: `/v1/compute/servers/${server.id}/snapshots/${server.snapshot_ids[0]}`,
    }),
    tree: `
gateway: POST /v1/compute/servers/{serverId}/snapshots/{snapshotId}
  compute: POST /v1/compute/servers/{serverId}/snapshots/{snapshotId}
    compute-worker: add compute.roll_back_server
      compute-worker: process compute
        compute-worker: run roll_back_server
          compute-worker: roll_back_server.follow
          compute-worker: roll_back_server.observe`,
  },
  {
    what: '9, a card out of the archive',
    victim: 'agency',
    point: 'accept.before_commit',
    call: ({ boards: [board] }) => ({
      method: 'POST',
      path: `/v1/agency/boards/${board.id}/cards/${board.archived_card_ids[0]}/restore`,
    }),
    tree: `
gateway: POST /v1/agency/boards/{boardId}/cards/{cardId}/restore
  agency: POST /v1/agency/boards/{boardId}/cards/{cardId}/restore`,
  },
  {
    what: '10, an upgrade of a database',
    victim: 'databases-worker',
    point: 'upgrade_database.cutover.before',
    call: async ({ databases: [{ id }] }, customer) => {
      expect((await customer.carryOut('POST', `/v1/databases/${id}/backups`, {})).status).toBe('succeeded');
      return { method: 'POST', path: `/v1/databases/${id}/upgrade`, body: { engine_version: '17' } };
    },
    tree: `
gateway: POST /v1/databases/{databaseId}/upgrade
  databases: POST /v1/databases/{databaseId}/upgrade
    databases-worker: add databases.upgrade_database
      databases-worker: process databases
        databases-worker: run upgrade_database
          databases-worker: upgrade_database.cutover
            database-host: PUT /control/databases/{id}/jobs/{id}
            database-host: POST /control/databases/{id}/upgrade/cutover
          databases-worker: upgrade_database.compare
            database-host: PUT /control/databases/{id}/jobs/{id}
          databases-worker: upgrade_database.finish
            database-host: PUT /control/databases/{id}/jobs/{id}
            database-host: POST /control/databases/{id}/upgrade/rest
          databases-worker: upgrade_database.back_up_new
            database-host: PUT /control/databases/{id}/jobs/{id}
          databases-worker: upgrade_database.verify_new`,
  },
];

/**
 * The chaos run uses both backends, because the trace of a wake-up depends on the backend. Other runs use one backend,
 * because each takes minutes.
 */
const backends = isChaos ? queueBackends() : queueBackends().slice(0, 1);

describe.each(backends)('whoever dies in the middle, the trace goes on to the end, queue on %s', (queueBackend) => {
  let collector: Collector;
  let stack: TestStack;
  let customer: Customer;
  let demo: Demo;
  const faults = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-faults-'));
  jest.setTimeout(600_000);

  beforeAll(async () => {
    collector = await startCollector();
    stack = await startStack({
      queueBackend,
      otlpEndpoint: collector.url,
      faultsDir: faults,
      environment: { TRACE_READS: '1' },
    });
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
    demo = demoSchema.parse(stack.demo);
  });
  afterAll(async () => {
    await stack?.stop();
    collector.close();
    fs.rmSync(faults, { recursive: true });
  });

  /**
   * Repeats the call until it gets its final answer. Before that, a service may be down (503), or an idempotency key
   * may still be in use by the killed request (409).
   */
  const answerTo = ({ method, path: at, body }: Call): Promise<Answer> => {
    const headers = method === 'POST' ? { 'idempotency-key': randomUUID() } : {};
    return until(
      async () => {
        const answer = await customer.insist(method, at, body, headers);
        return answer.status !== 409 && answer;
      },
      { timeoutMs: 60_000, what: `an answer to ${method} ${at}` },
    );
  };

  test.each(endpoints)('$what', async ({ victim, point, call, tree }) => {
    const wanted = await call(demo, customer);
    const pid = String(stack.processes()[victim]?.pid);
    if (point === undefined) stack.kill(victim);
    else fs.writeFileSync(path.join(faults, faultTokenName({ point, mode: 'kill' })), '');
    const answer = await answerTo(wanted);
    const location = answer.headers.get('location');
    if (location?.includes('/workflows/')) expect((await customer.follow(location)).status).toBe('succeeded');
    const traceId = answer.headers.get('traceparent')?.split('-')[1];
    const shown = (): string =>
      spanTree(
        collector.spans.filter((span) => span.traceId === traceId),
        pid,
      ).join('\n');
    await until(() => shown() === tree.trim(), { timeoutMs: 20_000, what: 'the whole trace' }).catch(() => undefined);
    expect(shown()).toBe(tree.trim());
    expect(String(stack.processes()[victim]?.pid)).not.toBe(pid);
  });
});
