import path from 'node:path';
import { modeSchema } from '@drydock/contracts/platform/values';
import { endpointDatabase } from '../database/database-endpoint';
import { siteAccount } from '../database/mariadb-database';
import { SiteFolder } from '../on-disk/site-folder';

/** The folder of a site's live release, and the URL of its database with the owner's login. */
export interface SitePlace {
  filesDir: string;
  databaseUrl: string;
  /** The account that owns the files. Null stands for the site agent's own account. */
  uid: number | null;
}

/**
 * Reads facts about a site that the control protocol does not tell, for programs of the operator such as the seeding of
 * the demo. `host` is the address that the site agent listens on.
 */
export async function readSiteOnDisk(sitesDir: string, siteId: string, host: string): Promise<SitePlace> {
  for (const mode of modeSchema.options) {
    const folder = new SiteFolder(sitesDir, mode, siteId);
    const record = await folder.readRecord();
    if (record === null) continue;
    const { role, password, database_port, uid, mariadb } = record;
    const [scheme, user] = mariadb === undefined ? ['postgresql', role] : ['mysql', siteAccount];
    return {
      filesDir: path.join(folder.currentLink, 'files'),
      databaseUrl: `${scheme}://${user}:${password}@${host}:${database_port}/${endpointDatabase}`,
      uid,
    };
  }
  throw new Error(`there is no site ${siteId} in ${sitesDir}`);
}
