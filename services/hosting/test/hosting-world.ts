import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { WorkflowView } from '@drydock/contracts/workflows';
import type { Caller } from '@drydock/service-kit/internal-token';
import { createSiteHostClient, type SiteHostClient } from '@drydock/site-host/client';
import { composeSiteHost } from '@drydock/site-host/compose';
import { type LedgerEntry, readLedger } from '@drydock/test-kit/ledger';
import type { QueueBackend } from '@drydock/test-kit/queue-backends';
import { readSharedCluster } from '@drydock/test-kit/test-cluster';
import { testQueue } from '@drydock/test-kit/test-queue';
import { until } from '@drydock/test-kit/wait';
import { uuidv7 } from 'uuidv7';
import { type HostingApi, serviceDir, startApi } from './hosting-api';

const secret = (): string => randomBytes(32).toString('hex');

export interface HostingWorld {
  api: HostingApi;
  caller: Caller;
  host: SiteHostClient;
  sitesDir: string;
  backupsDir: string;
  /** A worker process as it is deployed, from dist. */
  spawnWorker(environment?: Record<string, string>): ChildProcess;
  /** What the site host was asked to change, and whether it did. */
  ledger(): LedgerEntry[];
  close(): Promise<void>;
}

export const leaseSeconds = 1;

/** API, queue, site host and both Postgres roles for real; workers are spawned by the tests, which may kill them. `more` goes to API and workers. */
export async function openWorld(backend: QueueBackend, caller: Caller, more: Record<string, string> = {}): Promise<HostingWorld> {
  const queue = await testQueue(backend);
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-hosting-'));
  // A site's account has to get through to its own folder.
  chmodSync(folder, 0o711);
  const [sitesDir, backupsDir] = [path.join(folder, 'sites'), path.join(folder, 'backups')];
  mkdirSync(sitesDir);
  const siteHostSecret = secret();
  const site = await composeSiteHost({
    SERVICE_NAME: 'site-host',
    HOST: '127.0.0.1',
    PORT: 0,
    LOG_LEVEL: 'silent',
    OTEL_EXPORTER_OTLP_ENDPOINT: undefined,
    DRYDOCK_FAULTS: undefined,
    SITE_HOST_SECRET: siteHostSecret,
    SITES_DIR: sitesDir,
    SITES_DATABASE_URL: readSharedCluster().adminUrl,
  });
  const api = await startApi(caller, { queue: queue.url, siteHost: site.url, siteHostSecret, backupsDir, environment: more });
  const host = createSiteHostClient({ url: site.url, secret: siteHostSecret });
  const environment = {
    PATH: process.env['PATH'] ?? '',
    LOG_LEVEL: 'warn',
    DATABASE_URL: api.postgres.url,
    SERVICE_SECRET: secret(),
    INTERNAL_TOKEN_SECRET: secret(),
    AUDIT_TOKEN_SECRET: secret(),
    KEYS_URL: 'http://127.0.0.1:1',
    QUEUE_URL: queue.url,
    WORKFLOW_LEASE_SECONDS: String(leaseSeconds),
    WORKFLOW_SWEEP_MS: '200',
    SANDBOX_SLOW_MS: '300',
    BACKUPS_DIR: backupsDir,
    SITE_HOST_URL: site.url,
    SITE_HOST_SECRET: siteHostSecret,
    ARCHIVE_KEY: secret(),
    ...more,
  };
  return {
    api,
    caller,
    host,
    sitesDir,
    backupsDir,
    spawnWorker: (own = {}) =>
      spawn(process.execPath, ['--enable-source-maps', path.join(serviceDir, 'dist/worker.js')], {
        env: { ...environment, ...own },
        stdio: ['ignore', process.env['DRYDOCK_TEST_LOG'] === undefined ? 'ignore' : 'inherit', 'inherit'],
      }),
    ledger: () => readLedger(path.join(sitesDir, 'ledger.ndjson')),
    close: async () => {
      for (const { id } of await api.rows<{ id: string }>('SELECT id FROM sites')) await host.destroySite(id, { fence: String(2 ** 40) });
      await host.close();
      await site.lifetime.close();
      await api.close();
      await queue.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Follows what a 202 points to until it has ended. */
export async function ended(world: HostingWorld, location: unknown): Promise<WorkflowView> {
  return until(
    async () => {
      const view = (await world.api.call('GET', String(location))).json as WorkflowView;
      return ['succeeded', 'failed', 'needs_attention'].includes(view.status) && view;
    },
    { timeoutMs: 45_000, everyMs: 50, what: `the end of ${String(location)}` },
  );
}

/** Accepts, waits, and insists on success. */
export async function succeed(world: HostingWorld, method: string, target: string, body?: object): Promise<string> {
  const accepted = await world.api.call(method, target, body === undefined ? {} : { body });
  if (accepted.status !== 202) throw new Error(`${method} ${target} answered ${accepted.text}`);
  const view = await ended(world, accepted.headers['location']);
  if (view.status !== 'succeeded') throw new Error(`${view.kind} ended as ${JSON.stringify(view.error)} ${JSON.stringify(view.steps)}`);
  return accepted.text;
}

export async function makeSite(world: HostingWorld, name = 'Shop'): Promise<string> {
  const body = { name, primary_domain: `${uuidv7()}.example.com` };
  const { id } = JSON.parse(await succeed(world, 'POST', '/v1/sites', body)) as { id: string };
  return id;
}

/** Takes a backup and resolves with its id. */
export async function makeBackup(world: HostingWorld, siteId: string): Promise<string> {
  const surface = JSON.parse(await succeed(world, 'POST', `/v1/sites/${siteId}/backups`, {})) as { backups: Array<{ id: string }> };
  const [newest] = surface.backups;
  if (newest === undefined) throw new Error('no backup is listed');
  return newest.id;
}
