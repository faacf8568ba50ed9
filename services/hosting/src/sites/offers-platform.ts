import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';
import type { HandlerContext } from '../context';

/** A vendor and a host over ssh are configured for each mode by itself: the sandbox never reaches the live one. */
export function offersPlatform({ siteHosts, sshModes, vendorTimelines }: HandlerContext, platform: SitePlatform, mode: Mode): boolean {
  if (siteHosts[platform] === undefined) return false;
  if (platform === 'ssh') return sshModes.includes(mode);
  return platform !== 'vendor' || vendorTimelines[mode] !== undefined;
}
