import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { readSharedCluster } from '@drydock/test-kit/test-cluster';
import { type Claim, createSiteHostClient, type SiteHostClient } from '../src/client';
import { composeSiteHost } from '../src/compose';
import type { SiteHostConfig } from '../src/config';
import type { ReleaseDescription, SiteDescription } from '../src/protocol';

export const newSiteId = (): string => randomUUID();
export const claim = (fence: number): Claim => ({ fence: String(fence), workflowId: `workflow-${fence}` });

export async function hostConfig(): Promise<SiteHostConfig> {
  const sitesDir = await mkdtemp(path.join(os.tmpdir(), 'drydock-sites-'));
  // A site's account has to get through to its own folder.
  await chmod(sitesDir, 0o711);
  return {
    SERVICE_NAME: 'site-host',
    HOST: '127.0.0.1',
    PORT: 0,
    LOG_LEVEL: 'error',
    OTEL_EXPORTER_OTLP_ENDPOINT: undefined,
    DRYDOCK_FAULTS: undefined,
    SITE_HOST_SECRET: randomBytes(32).toString('hex'),
    SITES_DIR: sitesDir,
    SITES_DATABASE_URL: readSharedCluster().adminUrl,
  };
}

export interface TestHost {
  client: SiteHostClient;
  config: SiteHostConfig;
  controlUrl: string;
  /** Stops the host; its folder and databases stay for another start. */
  stop(): Promise<void>;
}

export async function startHost(config: SiteHostConfig): Promise<TestHost> {
  const { lifetime, url } = await composeSiteHost(config);
  const client = createSiteHostClient({ url, secret: config.SITE_HOST_SECRET });
  const stop = async (): Promise<void> => {
    await client.close();
    await lifetime.close();
  };
  return { client, config, controlUrl: url, stop };
}

/** Destroys every site that a test has made, stops the host and removes its folder. */
export async function clearHost(host: TestHost, siteIds: string[]): Promise<void> {
  for (const siteId of siteIds) await host.client.destroySite(siteId, claim(2 ** 40));
  await host.stop();
  await rm(host.config.SITES_DIR, { recursive: true, force: true });
}

export type Filled = SiteDescription | ReleaseDescription;
