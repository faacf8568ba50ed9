import { emulatorAdmin } from '@drydock/emulators';
import { z } from 'zod';
import type { Api } from './api';
import { createSite } from './create-site';
import { poll } from './poll';
import type { Seed, SeedContext } from './seed';
import { vendorContentBefore, vendorContentNow } from './vendor-content';

const surfaceSchema = z.looseObject({
  in_progress: z.boolean(),
  mailboxes: z.array(z.object({ points: z.array(z.unknown()) })),
});
const packagesSchema = z.object({ packages: z.array(z.looseObject({ id: z.int(), domain: z.string() })) });

interface VendorSite {
  api: Api;
  domain: string;
  vendor: SeedContext['vendor'];
}

/**
 * Creates a site at the vendor with restore points of its website, its database and its mailbox. Afterwards the content
 * of all three is changed.
 */
async function seedVendorSite({ api, domain, vendor }: VendorSite): Promise<string> {
  const id = await createSite(api, { name: 'Lighthouse Tea', domain, platform: 'vendor' });
  const path = `/v1/sites/${id}/vendor-snapshots`;
  const atRest = (what: string) =>
    poll(what, async () => {
      const surface = surfaceSchema.parse((await api(path)).body);
      return surface.in_progress ? null : surface;
    });
  const { mailboxes } = await atRest('Reading its timelines');
  const admin = emulatorAdmin(vendor.url, vendor.token);
  const { packages } = packagesSchema.parse(await admin.call('GET', 'packages'));
  const place = `packages/${packages.find((found) => found.domain === domain)?.id}`;
  // The restore point of the mailbox is created last. If it exists, an earlier start has created all points.
  if (!mailboxes.some(({ points }) => points.length > 0)) {
    await admin.call('PUT', `${place}/content`, vendorContentBefore);
    // The API answers 503 if no worker takes up the snapshot within ten seconds, for example because the other seeds
    // keep all workers busy. Nothing has then been started.
    await poll('A worker for the first snapshot', () =>
      api(path, { method: 'POST', body: { scope: 'web' }, idempotencyKey: `demo-snapshot-${domain}` }).catch(
        (error: unknown) => {
          if (String(error).includes(' answered 503')) return null;
          throw error;
        },
      ),
    );
    await atRest('The first snapshot of Lighthouse Tea');
    await admin.call('POST', `${place}/points`);
  }
  // Runs even if the points exist: an earlier start may have ended before it changed the content.
  await admin.call('PUT', `${place}/content`, vendorContentNow);
  return id;
}

export const vendorSeed: Seed = {
  title: 'Making a site at a hosting vendor, with restore points',
  fields: ['vendor_site_id'],
  seed: async ({ api, vendor, keep }) => {
    const [live] = await Promise.all([
      seedVendorSite({ api: api('live_key'), domain: 'tea.demo.test', vendor }),
      seedVendorSite({ api: api('sandbox_key'), domain: 'sandbox-tea.demo.test', vendor }),
    ]);
    keep({ vendor_site_id: live });
  },
};
