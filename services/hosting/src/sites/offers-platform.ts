import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import { problem } from '@drydock/contracts/platform/problem';
import type { Mode } from '@drydock/contracts/platform/values';
import type { HandlerContext } from '../context/context';
import { hostUnavailable } from './find-site';

/**
 * Whether the installation has the platform in this mode. A vendor and an ssh host are configured for each mode
 * separately, so that the sandbox never reaches the live one.
 */
export function offersPlatform(
  { siteHosts, sshModes, vendorTimelines }: HandlerContext,
  platform: SitePlatform,
  mode: Mode,
): boolean {
  if (siteHosts[platform] === undefined) return false;
  if (platform === 'ssh') return sshModes.includes(mode);
  return platform !== 'vendor' || vendorTimelines[mode] !== undefined;
}

/**
 * Whether a site of the platform can have this database; null stands for the platform's default. Every host of ours has
 * Postgres, so hosts are not asked for it.
 */
async function offersDatabase(
  { siteHosts }: HandlerContext,
  platform: SitePlatform,
  database: SiteDatabase | null,
): Promise<boolean> {
  if (database === null || (platform === 'local' && database === 'postgres')) return true;
  return (await siteHosts[platform]?.listDatabases())?.includes(database) ?? false;
}

/** Throws the refusal of a database that a new site of the platform cannot have. */
export async function assertOffersDatabase(
  context: HandlerContext,
  platform: SitePlatform,
  database: SiteDatabase | null,
): Promise<void> {
  const isOffered = await offersDatabase(context, platform, database).catch((error: unknown) => {
    throw hostUnavailable(error);
  });
  if (!isOffered) throw problem('site_database_not_offered');
}

/**
 * Whether a deleted site would find its database on a host. A host that does not answer now counts as a yes, because
 * the restore waits for it.
 */
export const mayOfferDatabase = (
  context: HandlerContext,
  site: { platform: SitePlatform; database: SiteDatabase | null },
): Promise<boolean> => offersDatabase(context, site.platform, site.database).catch(() => true);
