import { createSiteHostClient } from '@drydock/site-host/client';
import { type Surroundings, urlOf } from './programs/program';

/** Where a site lives, as its host tells: its address, its folder and its database. */
export async function describeSite(
  around: Surroundings,
  siteId: string,
): Promise<{ url: string; files_dir: string; database_url: string }> {
  const client = createSiteHostClient({ url: urlOf(around, 'site-host'), secret: around.derive('site-host') });
  try {
    const { url, files_dir, database_url } = await client.readSite(siteId);
    return { url, files_dir, database_url };
  } finally {
    await client.close();
  }
}
