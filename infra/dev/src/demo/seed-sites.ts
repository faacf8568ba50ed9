import fs from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import type { Api } from './api';
import { createSite } from './create-site';
import { makeAnew, problemOf } from './make-anew';
import { poll } from './poll';
import type { Seed, SitePlace } from './seed';
import { type DemoSite, demoSites } from './site-content';

const surfaceSchema = z.looseObject({
  in_progress: z.boolean(),
  backups: z.array(z.looseObject({ status: z.string(), created_at: z.string() })),
});

/**
 * Writes a file into a site. If this process is root, the file and its folders get the owner of the site's folder, so
 * that the site can change and remove them.
 */
export async function writeSiteFile(filesDir: string, name: string, content: Buffer | string): Promise<void> {
  const file = path.join(filesDir, name);
  await fs.mkdir(path.dirname(file), { recursive: true });
  await fs.writeFile(file, content);
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await fs.stat(filesDir);
  for (let place = name; place !== '.'; place = path.dirname(place))
    await fs.lchown(path.join(filesDir, place), uid, gid);
}

async function fillSite(place: SitePlace, site: DemoSite): Promise<void> {
  for (const [name, content] of Object.entries(site.files)) await writeSiteFile(place.files_dir, name, content);
  const client = new pg.Client({ connectionString: place.database_url });
  await client.connect();
  try {
    await client.query(site.sql);
  } finally {
    await client.end();
  }
}

type DescribeSite = (siteId: string) => Promise<SitePlace>;

/**
 * Creates a site, or finds the site that an earlier start has created. Then writes its content. A repeated call writes
 * the same content again.
 */
export async function putUpSite(
  api: Api,
  site: DemoSite,
  describeSite: DescribeSite,
): Promise<SitePlace & { id: string }> {
  const id = await createSite(api, { name: site.name, domain: site.domain });
  const { url, files_dir, database_url } = await describeSite(id);
  await fillSite({ url, files_dir, database_url }, site);
  return { id, url, files_dir, database_url };
}

const readBackups = async (api: Api, id: string) => surfaceSchema.parse((await api(`/v1/sites/${id}/backups`)).body);
const hasFailed = ({ in_progress, backups }: z.infer<typeof surfaceSchema>): boolean =>
  !in_progress && !backups.some(({ status }) => status === 'completed');

async function seedSite(api: Api, site: DemoSite, describeSite: DescribeSite): Promise<SitePlace & { id: string }> {
  const made = await putUpSite(api, site, describeSite);
  const { id } = made;
  await makeAnew(
    `demo-backup-${site.domain}`,
    (idempotencyKey) => api(`/v1/sites/${id}/backups`, { method: 'POST', body: {}, idempotencyKey }),
    async () => {
      const surface = await readBackups(api, id);
      return hasFailed(surface) ? (surface.backups[0]?.created_at ?? null) : null;
    },
  );
  await poll(`The first backup of ${site.name}`, async () => {
    const surface = await readBackups(api, id);
    if (hasFailed(surface))
      throw new Error(`The first backup of ${site.name} failed: ${await problemOf(api, `/v1/sites/${id}`)}`);
    return surface.in_progress ? null : surface;
  });
  return made;
}

/** Creates two small sites whose pages read their databases. Each has one backup. */
export const sitesSeed: Seed = {
  title: 'Making two sites and a first backup of each',
  fields: ['sites'],
  seed: async ({ api, describeSite, demo, keep }) => {
    const made = await Promise.allSettled(demoSites.map((site) => seedSite(api('live_key'), site, describeSite)));
    const sites = made.flatMap((site) => (site.status === 'fulfilled' ? [site.value] : []));
    const failed = made.find((site) => site.status === 'rejected');
    // A site of an earlier start stays in the file, because the seed may have failed for this site at this start.
    const others =
      failed === undefined ? [] : (demo.sites ?? []).filter(({ id }) => !sites.some((site) => site.id === id));
    keep({ sites: [...sites, ...others] });
    if (failed !== undefined) throw failed.reason;
  },
};
