import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createSiteHostClient, type SiteHostClient } from '@drydock/agent/clients';
import type { Claim } from '@drydock/agent/control';
import type { SiteDescription } from '@drydock/agent/site';
import { bySocket, defaultMajor, settlePostgresFolder } from '@drydock/postgres';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { readIfThere } from '@drydock/process';
import { z } from 'zod';
import { composeSiteHost } from '../src/compose';
import type { SiteHostConfig } from '../src/config';
import { socketNumber } from '../src/database/sites-clusters';
import { SiteFolder } from '../src/on-disk/site-folder';
import { readSiteOnDisk } from '../src/sites/site-on-disk';

export const newSiteId = (): string => randomUUID();
export const claim = (fence: number): Claim => ({ fence: String(fence), workflowId: `workflow-${fence}` });

export async function hostConfig(): Promise<SiteHostConfig> {
  const sitesDir = await mkdtemp(path.join(os.tmpdir(), 'drydock-sites-'));
  // Other accounts must be able to pass through this folder, because the sites' folders are below it.
  await chmod(sitesDir, 0o711);
  return {
    SERVICE_NAME: 'site-host',
    HOST: '127.0.0.1',
    PORT: 0,
    LOG_LEVEL: 'error',
    OTEL_EXPORTER_OTLP_ENDPOINT: undefined,
    TRACE_READS: 0,
    TRACE_SLOW_MS: 1_000,
    TRACE_DETAIL: 'default',
    DRYDOCK_TIMEOUT_SCALE: 1,
    DRYDOCK_FAULTS: undefined,
    SITE_HOST_SECRET: randomBytes(32).toString('hex'),
    SITE_HOST_READER_SECRET: randomBytes(32).toString('hex'),
    SITES_DIR: sitesDir,
    SITES_DATABASE_URL: readSharedCluster().adminUrl,
    SITES_DATABASE_SOCKET: undefined,
    SITES_DATABASE_FOR: 'all_sites',
    SITE_DISK_GB: 20,
    SITES_OUTGOING_ALLOW: undefined,
    DRYDOCK_RUN_APPS_WITHOUT_ISOLATION: undefined,
  };
}

/** The place of a site's or a release's content. The control protocol does not tell it. */
export interface Filled {
  files_dir: string;
  database_url: string;
  /** The owner of the files. Null stands for this process's account. */
  owner: { uid: number; gid: number } | null;
}

export type FilledSite = SiteDescription & Filled;

/** A client whose answers also tell where the content is, because tests write content directly. */
export interface TestClient extends Omit<SiteHostClient, 'ensureSite' | 'readSite' | 'switchRelease'> {
  ensureSite(...args: Parameters<SiteHostClient['ensureSite']>): Promise<SiteDescription & Filled>;
  readSite(siteId: string): Promise<SiteDescription & Filled>;
  placeOfRelease(siteId: string, releaseId: string): Promise<Filled>;
  switchRelease(...args: Parameters<SiteHostClient['switchRelease']>): Promise<SiteDescription & Filled>;
}

export function withPlaces(
  client: SiteHostClient,
  { SITES_DIR: sitesDir, SITES_DATABASE_URL, HOST }: SiteHostConfig,
): TestClient {
  const placeOf = async (siteId: string): Promise<Filled> => {
    const { filesDir, databaseUrl, uid } = await readSiteOnDisk(sitesDir, siteId, HOST);
    return { files_dir: filesDir, database_url: databaseUrl, owner: uid === null ? null : { uid, gid: uid } };
  };
  /** The administration URL of the server that has this release's database. */
  const adminUrlOf = async (cluster: string | undefined): Promise<string> => {
    if (cluster === undefined) return SITES_DATABASE_URL ?? '';
    const folder = path.join(sitesDir, 'clusters', cluster);
    const { home } = settlePostgresFolder(folder, defaultMajor);
    const note = await readIfThere(path.join(home, 'socket.txt'));
    const { account } = z
      .object({ account: z.int() })
      .parse(JSON.parse(await readFile(path.join(folder, 'cluster.json'), 'utf8')));
    return bySocket(
      `postgresql://postgres@localhost:${socketNumber(account)}/postgres`,
      note?.trim() ?? path.join(home, 'socket'),
    );
  };
  const placeOfRelease = async (siteId: string, releaseId: string): Promise<Filled> => {
    const folders = (['live', 'sandbox'] as const).map((mode) => new SiteFolder(sitesDir, mode, siteId));
    for (const folder of folders) {
      const [site, release] = [await folder.readRecord(), await folder.readRelease(releaseId)];
      if (site === null || release === null) continue;
      const url = new URL(await adminUrlOf(release.cluster));
      Object.assign(url, { username: site.role, password: site.password, pathname: `/${release.database}` });
      return {
        files_dir: folder.filesDir(releaseId),
        database_url: url.href,
        owner: site.uid === null ? null : { uid: site.uid, gid: site.uid },
      };
    }
    throw new Error(`there is no release ${releaseId} of ${siteId}`);
  };
  const ofSite = async (siteId: string, described: Promise<SiteDescription>) => ({
    ...(await described),
    ...(await placeOf(siteId)),
  });
  return {
    ...client,
    ensureSite: (siteId, ...rest) => ofSite(siteId, client.ensureSite(siteId, ...rest)),
    readSite: (siteId) => ofSite(siteId, client.readSite(siteId)),
    switchRelease: (siteId, ...rest) => ofSite(siteId, client.switchRelease(siteId, ...rest)),
    placeOfRelease,
  };
}

export interface TestHost {
  client: TestClient;
  config: SiteHostConfig;
  controlUrl: string;
  /** Stops the site agent. Its folder and its databases stay for another start. */
  stop(): Promise<void>;
}

export async function startHost(
  config: SiteHostConfig,
  settings?: Parameters<typeof composeSiteHost>[1],
): Promise<TestHost> {
  const { lifetime, url } = await composeSiteHost(config, settings);
  const client = withPlaces(createSiteHostClient({ url, secret: config.SITE_HOST_SECRET }), config);
  const stop = async (): Promise<void> => {
    await client.close();
    await lifetime.close();
  };
  return { client, config, controlUrl: url, stop };
}

/** Destroys the sites, stops the site agent and removes its folder. */
export async function clearHost(host: TestHost, siteIds: string[]): Promise<void> {
  for (const siteId of siteIds) await host.client.destroySite(siteId, claim(2 ** 52));
  await host.stop();
  await rm(host.config.SITES_DIR, { recursive: true, force: true });
}
