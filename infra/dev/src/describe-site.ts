import path from 'node:path';
import { createSiteHostClient } from '@drydock/agent/site/client';
import { readSiteOnDisk } from '@drydock/site-agent/sites/site-on-disk';
import { type Surroundings, urlOf } from './programs/program';

/** Where a site lives: its address as its host tells; its folder and its database as the data folder does, which is ours. */
export async function describeSite(
  around: Surroundings,
  siteId: string,
): Promise<{ url: string; files_dir: string; database_url: string }> {
  const client = createSiteHostClient({ url: urlOf(around, 'site-host'), secret: around.derive('site-host') });
  try {
    const { url } = await client.readSite(siteId);
    const { filesDir, databaseUrl } = await readSiteOnDisk(path.join(around.dataDir, 'sites'), siteId, '127.0.0.1');
    return { url, files_dir: filesDir, database_url: databaseUrl };
  } finally {
    await client.close();
  }
}
