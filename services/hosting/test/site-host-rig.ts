import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { callerOf } from '@drydock/service/testing/service-api';
import type { SiteHost, SiteRef } from '../src/providers/site-host';
import { localSiteHost } from '../src/providers/site-host.local';
import { openWorld } from './hosting-world';
import { fillSite, type SiteState, stateOf } from './site-state';

/** A real host of one platform, and its driver. Tests fill and read its sites without the driver. */
export interface SiteHostRig {
  driver: SiteHost;
  sitesDir: string;
  filesDirOf(site: SiteRef): Promise<string>;
  fill(site: SiteRef, version: number): Promise<void>;
  stateOf(site: SiteRef): Promise<SiteState>;
  close(): Promise<void>;
}

/** Opens a local host. `database` is the engine of the sites that the driver makes. */
export async function openLocalRig(archiveKey: Buffer, database?: SiteDatabase): Promise<SiteHostRig> {
  const world = await openWorld('postgres', callerOf());
  const driver = localSiteHost({ client: world.host, archiveKey });
  return {
    driver: { ...driver, create: (site, wanted, call) => driver.create(site, { database, ...wanted }, call) },
    sitesDir: world.sitesDir,
    filesDirOf: async ({ siteId }) => (await world.placeOf(siteId)).filesDir,
    fill: ({ siteId }, version) => fillSite(world, siteId, version),
    stateOf: ({ siteId }) => stateOf(world, siteId),
    close: () => world.close(),
  };
}
