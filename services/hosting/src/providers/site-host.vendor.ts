import { retryLater } from '@drydock/workflow/definition';
import { type HostedSite, type SiteHost, SiteHostError, type SiteHostReader, type SiteRef } from './site-host';
import { timelineOf, VendorError, type VendorPackage, type VendorTimelines } from './vendor-timeline';

/** A package counts as one release for its whole life, because Drydock never replaces its content. */
const toHosted = ({ packageId, url }: VendorPackage): HostedSite => {
  const release = `package-${packageId}`;
  return { url, currentRelease: release, releases: [release], freeBytes: 0, vendorPackageId: packageId };
};

const unsupported = (what: string): Promise<never> =>
  Promise.reject(
    new SiteHostError('unsupported', `a vendor's package cannot be ${what}; rules keep everybody from asking`),
  );

/** Finds no site, because a vendor's sites are on no host of Drydock. Handlers read the vendor's timelines instead. */
export const vendorSiteHostReader: SiteHostReader = {
  describe: async () => null,
  describeApp: async () => null,
  listDatabases: async () => [],
  readStorage: async () => null,
};

/** Sites that are hosting packages at a vendor. Drydock makes and removes them. Restores are the vendor's work. */
export function vendorSiteHost(timelines: VendorTimelines): SiteHost {
  const find = ({ siteId, mode }: SiteRef, signal?: AbortSignal) =>
    timelineOf(timelines, mode).findPackage(siteId, signal);
  return {
    ...vendorSiteHostReader,
    firstRelease: '',
    readsOnce: false,
    describe: async (site, signal) => {
      const found = await find(site, signal);
      return found === null ? null : toHosted(found);
    },
    create: async ({ siteId, mode }, { domain }, { signal }) => {
      try {
        return toHosted(await timelineOf(timelines, mode).ensurePackage(siteId, domain, signal));
      } catch (error) {
        if (!(error instanceof VendorError)) throw error;
        if (error.fault === 'refused') throw new SiteHostError('domain_taken', error.message, { cause: error });
        // The vendor has begun nothing, and a wait that it asks for is no failure of the work.
        if (error.fault === 'busy') throw retryLater({ seconds: error.retryAfterSeconds });
        throw error;
      }
    },
    destroy: async (site, { signal }) => {
      const found = await find(site, signal);
      if (found !== null) await timelineOf(timelines, site.mode).removePackage(found.packageId, signal);
    },
    probe: async (site, { signal }) => {
      const found = await find(site, signal);
      const httpStatus = found === null ? 0 : await timelineOf(timelines, site.mode).probe(found.url, signal);
      return {
        httpStatus,
        isSqlOk: true,
        isSqlAnswered: true,
        appGeneration: null,
        detail: 'the databases of a package are not reached from here',
      };
    },
    pack: () => unsupported('packed'),
    stage: () => unsupported('staged'),
    freeze: () => unsupported('frozen'),
    thaw: () => unsupported('thawed'),
    switchRelease: () => unsupported('switched'),
    retire: () => unsupported('retired'),
    restartApp: () => unsupported('restarted'),
  };
}
