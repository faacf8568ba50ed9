import { retryLater } from '@drydock/workflow/definition';
import { type HostedSite, type SiteHost, SiteHostError, type SiteHostReader, type SiteRef } from './site-host';
import { timelineOf, VendorError, type VendorFault, type VendorPackage, type VendorTimelines } from './vendor-timeline';

/** A package counts as one release for its whole life, because Drydock never replaces its content. */
const toHosted = ({ packageId, url }: VendorPackage): HostedSite => {
  const release = `package-${packageId}`;
  return { url, currentRelease: release, releases: [release], freeBytes: 0, vendorPackageId: packageId };
};

const unsupported = (what: string): Promise<never> =>
  Promise.reject(
    new SiteHostError('unsupported', `a vendor's package cannot be ${what}; rules keep everybody from asking`),
  );

/**
 * The faults after which the same request may succeed later. `denied` passes once an operator has corrected the key.
 * `not_understood` may come from a maintenance page. After `unknown` the vendor may have carried out the change, so the
 * next attempt first reads what the vendor has.
 */
const passing: ReadonlySet<VendorFault> = new Set(['busy', 'unavailable', 'unknown', 'not_understood', 'denied']);
const outageSeconds = 5;

/**
 * Postpones the step until the vendor may have recovered, without using up an attempt: an outage is no failure of the
 * work. Other errors stay as they are.
 */
function waitOutOutage(error: unknown): never {
  if (!(error instanceof VendorError) || !passing.has(error.fault)) throw error;
  const { fault, retryAfterSeconds: seconds } = error;
  throw retryLater({ seconds: fault === 'busy' ? seconds : Math.max(outageSeconds, seconds) });
}

/** Finds no site, because a vendor's sites are on no host of Drydock. Handlers read the vendor's timelines instead. */
export const vendorSiteHostReader: SiteHostReader = {
  describe: async () => null,
  describeApp: async () => null,
  listDatabases: async () => [],
  readStorage: async () => null,
};

/**
 * Sites that are hosting packages at a vendor. Drydock makes and removes them. Restores are the vendor's work.
 * `packageIdOf` resolves with the id of the package from Drydock's record, or with null if there is no record. The
 * record is written with the checkpoint of the creation, and is lost if Drydock's database is put back to an earlier
 * moment.
 */
export function vendorSiteHost(
  timelines: VendorTimelines,
  packageIdOf: (site: SiteRef) => Promise<string | null>,
): SiteHost {
  const find = async (site: SiteRef, signal?: AbortSignal) => {
    const { siteId, mode } = site;
    const knownId = await packageIdOf(site);
    return timelineOf(timelines, mode).findPackage(siteId, signal, knownId).catch(waitOutOutage);
  };
  return {
    ...vendorSiteHostReader,
    firstRelease: '',
    readsOnce: false,
    describe: async (site, signal) => {
      const found = await find(site, signal);
      return found === null ? null : toHosted(found);
    },
    create: async ({ siteId, mode }, { domain }, { signal }) => {
      const made = timelineOf(timelines, mode).ensurePackage(siteId, domain, signal);
      return toHosted(
        await made.catch((error: unknown) => {
          if (error instanceof VendorError && error.fault === 'refused')
            throw new SiteHostError('domain_taken', error.message, { cause: error });
          return waitOutOutage(error);
        }),
      );
    },
    destroy: async (site, { signal }) => {
      const found = await find(site, signal);
      if (found === null) return;
      await timelineOf(timelines, site.mode).removePackage(found.packageId, signal).catch(waitOutOutage);
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
