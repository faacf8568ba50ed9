import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSiteHostClient, type SiteHostClient } from '@drydock/agent/clients';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import type { Caller } from '@drydock/service/access';
import { succeed } from '@drydock/service/testing/follow-workflow';
import { openServiceWorld, type ServiceWorld } from '@drydock/service/testing/service-world';
import { composeSiteHost } from '@drydock/site-agent/compose';
import { readSiteOnDisk, type SitePlace } from '@drydock/site-agent/sites/site-on-disk';
import { type LedgerEntry, readLedger } from '@drydock/testing/ledger';
import type { QueueBackend } from '@drydock/testing/scope';
import { newSecret } from '@drydock/testing/secret';
import { uuidv7 } from 'uuidv7';
import { hosting } from './hosting-api';

export interface HostingWorld extends ServiceWorld {
  /** The folder and the database of a site's content. They are read from disk, because the agent's API hides them. */
  placeOf(siteId: string): Promise<SitePlace>;
  host: SiteHostClient;
  sitesDir: string;
  backupsDir: string;
  archiveKey: Buffer;
  /** The changes that were requested of the site agent, and whether it made them. */
  ledger(): LedgerEntry[];
}

export type SiteAgentConfig = Parameters<typeof composeSiteHost>[0];
export type StartSiteAgent = (config: SiteAgentConfig) => Promise<{ url: string; stop(): Promise<void> }>;

const inThisProcess: StartSiteAgent = async (config) => {
  const { url, lifetime } = await composeSiteHost(config);
  return { url, stop: () => lifetime.close() };
};

/**
 * Starts an API and a site agent, but no worker yet. `more` has further variables for the environment of the API and of
 * the workers.
 */
export async function openWorld(
  backend: QueueBackend,
  caller: Caller,
  more: Record<string, string> = {},
  startSiteAgent = inThisProcess,
): Promise<HostingWorld> {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-hosting-'));
  // A site's account must be able to reach its own folder, which is below this one.
  chmodSync(folder, 0o711);
  const [sitesDir, backupsDir] = [path.join(folder, 'sites'), path.join(folder, 'backups')];
  mkdirSync(sitesDir);
  const [siteHostSecret, readerSecret, archiveKey] = [newSecret(), newSecret(), newSecret()];
  const site = await startSiteAgent({
    SERVICE_NAME: 'site-host',
    HOST: '127.0.0.1',
    PORT: 0,
    LOG_LEVEL: 'silent',
    OTEL_EXPORTER_OTLP_ENDPOINT: undefined,
    TRACE_READS: 0,
    TRACE_SLOW_MS: 1_000,
    TRACE_DETAIL: 'default',
    DRYDOCK_TIMEOUT_SCALE: 1,
    DRYDOCK_FAULTS: undefined,
    SITE_HOST_SECRET: siteHostSecret,
    SITE_HOST_READER_SECRET: readerSecret,
    SITES_DIR: sitesDir,
    SITES_DATABASE_URL: readSharedCluster().adminUrl,
    SITES_DATABASE_SOCKET: undefined,
    SITES_DATABASE_FOR: 'all_sites',
    SITE_DISK_GB: 20,
    DRYDOCK_RUN_APPS_WITHOUT_ISOLATION: undefined,
  });
  const host = createSiteHostClient({ url: site.url, secret: siteHostSecret });
  const world = await openServiceWorld(hosting, {
    backend,
    caller,
    environment: {
      DOMAIN_PROOF: 'skipped',
      BACKUPS_DIR: backupsDir,
      SITE_HOST_URL: site.url,
      SITE_HOST_READER_SECRET: readerSecret,
      ...more,
    },
    workers: { SITE_HOST_SECRET: siteHostSecret, ARCHIVE_KEY: archiveKey },
  });
  return {
    ...world,
    host,
    sitesDir,
    backupsDir,
    archiveKey: Buffer.from(archiveKey, 'hex'),
    placeOf: (siteId) => readSiteOnDisk(sitesDir, siteId, '127.0.0.1'),
    ledger: () => readLedger(path.join(sitesDir, 'ledger.ndjson')),
    close: async () => {
      await world.endWorkers();
      for (const { id } of await world.api.rows<{ id: string }>('SELECT id FROM sites'))
        await host.destroySite(id, { fence: String(2 ** 52) });
      await host.close();
      await site.stop();
      await world.close();
      // A site's content may have modes that exclude even its owner.
      spawnSync('chmod', ['-R', 'u+rwx', folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Creates a site and resolves with its id when it is served. `platform` and `database` have the defaults of the API.
 */
export async function makeSite(
  world: HostingWorld,
  name = 'Shop',
  platform?: string,
  database?: string,
): Promise<string> {
  const body = { name, primary_domain: `${uuidv7()}.example.com`, platform, database };
  return (await succeed<{ id: string }>(world, 'POST', '/v1/sites', { body })).id;
}

export async function makeBackup(world: HostingWorld, siteId: string): Promise<string> {
  const surface = await succeed<SiteBackupSurface>(world, 'POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const [newest] = surface.backups;
  if (newest === undefined) throw new Error('no backup is listed');
  return newest.id;
}
