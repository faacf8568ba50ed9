import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import { problem } from '@drydock/contracts/platform/problem';
import type { Mode } from '@drydock/contracts/platform/values';
import { hostUnavailable } from '../app/host-unavailable';
import type { HandlerContext } from '../context';

/** A vendor and a host over ssh are configured for each mode by itself: the sandbox never reaches the live one. */
export function offersPlatform({ siteHosts, sshModes, vendorTimelines }: HandlerContext, platform: SitePlatform, mode: Mode): boolean {
  if (siteHosts[platform] === undefined) return false;
  if (platform === 'ssh') return sshModes.includes(mode);
  return platform !== 'vendor' || vendorTimelines[mode] !== undefined;
}

/** Throws the refusal of a database that a new site of the platform cannot have. Postgres is on every host of ours: it is not asked for that. */
export async function assertOffersDatabase(
  { siteHosts }: HandlerContext,
  platform: SitePlatform,
  database: SiteDatabase | undefined,
): Promise<void> {
  if (database === undefined || (platform === 'local' && database === 'postgres')) return;
  const offered = await siteHosts[platform]?.listDatabases().catch((error: unknown) => {
    throw hostUnavailable(error);
  });
  if (!offered?.includes(database)) throw problem('site_database_not_offered');
}
