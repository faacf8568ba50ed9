import pg from 'pg';
import { z } from 'zod';
import type { Api } from './api';
import { poll } from './poll';
import type { Seed, SeedContext, SitePlace } from './seed';
import { putUpSite, writeSiteFile } from './seed-sites';
import { type DemoSite, sandboxTideSite, tideSite } from './site-content';

const stateSchema = z.looseObject({
  configured: z.boolean(),
  in_progress: z.boolean(),
  last_error_code: z.string(),
  copies: z.array(z.unknown()),
});

/** Adds the reading of one day to the site's files and database. A repeated call adds nothing. */
async function addReading(place: SitePlace, number: number): Promise<void> {
  const day = `2026-03-0${number}`;
  await writeSiteFile(place.files_dir, `${day}.txt`, `high water ${200 + 6 * number} cm\n`);
  const client = new pg.Client({ connectionString: place.database_url });
  await client.connect();
  try {
    const reading = [number, day, 200 + 6 * number, 40 - 4 * number];
    await client.query('INSERT INTO readings VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING', reading);
  } finally {
    await client.end();
  }
}

interface OffsiteSite {
  api: Api;
  site: DemoSite;
  storage: SeedContext['customerStorage']['live'];
}

/**
 * Creates a full copy of the site in the customer's bucket, and then two increments. Before each increment the site
 * gets the reading of one more day, so that the increment has content.
 */
async function seedCopies(
  { api, site, storage }: OffsiteSite,
  describeSite: SeedContext['describeSite'],
): Promise<string> {
  const place = await putUpSite(api, site, describeSite);
  const offsite = `/v1/sites/${place.id}/offsite`;
  const atRest = (what: string) =>
    poll(what, async () => {
      const state = stateSchema.parse((await api(offsite)).body);
      if (state.last_error_code !== '')
        throw new Error(`${what} failed: ${state.last_error_code}; see the logs folder`);
      return state.in_progress ? null : state;
    });
  const { endpoint, region, bucket, accessKeyId, secretAccessKey } = storage;
  const body = {
    endpoint,
    region,
    bucket,
    prefix: 'tides',
    access_key_id: accessKeyId,
    secret_access_key: secretAccessKey,
  };
  if (!(await atRest('Looking at its copies')).configured) await api(offsite, { method: 'PUT', body });
  for (const [number, kind] of (['full', 'incremental', 'incremental'] as const).entries()) {
    if (number > 0) await addReading(place, 3 + number);
    await api(`${offsite}/copies`, {
      method: 'POST',
      body: { kind },
      idempotencyKey: `demo-copy-${site.domain}-${number}`,
    });
    await atRest(`Copy ${number + 1} of ${site.name}`);
  }
  return place.id;
}

export const offsiteSeed: Seed = {
  title: "Making a site with copies in a bucket of the customer's own",
  fields: ['offsite_site_id', 'customer_storage'],
  seed: async ({ api, describeSite, customerStorage, keep }) => {
    const [live] = await Promise.all([
      seedCopies({ api: api('live_key'), site: tideSite, storage: customerStorage.live }, describeSite),
      seedCopies({ api: api('sandbox_key'), site: sandboxTideSite, storage: customerStorage.sandbox }, describeSite),
    ]);
    const { endpoint, region, bucket, accessKeyId, secretAccessKey } = customerStorage.live;
    const customer_storage = {
      endpoint,
      region,
      bucket,
      access_key_id: accessKeyId,
      secret_access_key: secretAccessKey,
    };
    keep({ offsite_site_id: live, customer_storage });
  },
};
