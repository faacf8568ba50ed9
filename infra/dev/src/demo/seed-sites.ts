import fs from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import type { Api } from './api';
import { poll } from './poll';
import type { Seed, SitePlace } from './seed';
import { type DemoSite, demoSites } from './site-content';

const siteSchema = z.looseObject({ id: z.string(), status: z.string(), name: z.string() });
const surfaceSchema = z.looseObject({ in_progress: z.boolean(), backups: z.array(z.looseObject({ status: z.string() })) });

async function fillSite(place: SitePlace, site: DemoSite): Promise<void> {
  for (const [name, content] of Object.entries(site.files)) {
    const file = path.join(place.files_dir, name);
    await fs.mkdir(path.dirname(file), { recursive: true });
    await fs.writeFile(file, content);
  }
  const client = new pg.Client({ connectionString: place.database_url });
  await client.connect();
  try {
    await client.query(site.sql);
  } finally {
    await client.end();
  }
}

type DescribeSite = (siteId: string) => Promise<SitePlace>;

/** The site is found again by its idempotency key, and its content is written by statements that can be repeated. */
export async function putUpSite(api: Api, site: DemoSite, describeSite: DescribeSite): Promise<SitePlace & { id: string }> {
  const created = await api('/v1/sites', {
    method: 'POST',
    body: { name: site.name, primary_domain: site.domain },
    idempotencyKey: `demo-site-${site.domain}`,
  });
  const { id } = siteSchema.parse(created.body);
  await poll(`Creating ${site.name}`, async () => {
    const { status } = siteSchema.parse((await api(`/v1/sites/${id}`)).body);
    if (status === 'failed') throw new Error(`${site.name} could not be created; see the logs folder`);
    return status === 'active' ? status : null;
  });
  const { url, files_dir, database_url } = await describeSite(id);
  await fillSite({ url, files_dir, database_url }, site);
  return { id, url, files_dir, database_url };
}

async function seedSite(api: Api, site: DemoSite, describeSite: DescribeSite): Promise<SitePlace & { id: string }> {
  const made = await putUpSite(api, site, describeSite);
  const { id } = made;
  await api(`/v1/sites/${id}/backups`, { method: 'POST', body: {}, idempotencyKey: `demo-backup-${site.domain}` });
  await poll(`The first backup of ${site.name}`, async () => {
    const surface = surfaceSchema.parse((await api(`/v1/sites/${id}/backups`)).body);
    return surface.in_progress || !surface.backups.some((backup) => backup.status === 'completed') ? null : surface;
  });
  return made;
}

/** Two real little sites whose pages read their database, each with a first backup. */
export const sitesSeed: Seed = {
  title: 'Making two sites and a first backup of each',
  fields: ['sites'],
  seed: async ({ api, describeSite, keep }) => {
    keep({ sites: await Promise.all(demoSites.map((site) => seedSite(api('live_key'), site, describeSite))) });
  },
};
