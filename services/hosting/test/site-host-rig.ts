import type { SiteHost, SiteRef } from '../src/providers/site-host';
import { localSiteHost } from '../src/providers/site-host.local';
import { callerOf } from './hosting-api';
import { openWorld } from './hosting-world';
import { placeOf, type SitePlace } from './site-state';

/** A real host of one platform, its driver, and the ways around the driver to fill a site and to look at it. */
export interface SiteHostRig {
  driver: SiteHost;
  sitesDir: string;
  placeOf(site: SiteRef): Promise<SitePlace>;
  close(): Promise<void>;
}

export async function openLocalRig(archiveKey: Buffer): Promise<SiteHostRig> {
  const world = await openWorld('postgres', callerOf());
  return {
    driver: localSiteHost({ client: world.host, archiveKey }),
    sitesDir: world.sitesDir,
    placeOf: ({ siteId }) => placeOf(world, siteId),
    close: () => world.close(),
  };
}
