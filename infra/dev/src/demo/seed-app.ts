import type { Seed } from './seed';
import { putUpSite } from './seed-sites';
import { clockSite } from './site-content';

export const appSeed: Seed = {
  title: 'Making a site with an application',
  fields: ['app_site_id'],
  seed: async ({ api, describeSite, keep }) => {
    const [live] = await Promise.all(
      (['live_key', 'sandbox_key'] as const).map((key) => putUpSite(api(key), clockSite, describeSite)),
    );
    if (live !== undefined) keep({ app_site_id: live.id });
  },
};
