import type { Mode } from '@drydock/contracts/platform/values';
import type { Lifetime } from '@drydock/service/process/shutdown';
import type { ServerConfig, WorkerConfig } from './config';
import { createVendorHttp, type VendorHttp } from './providers/vendor-http';
import type { VendorTimelineReaders, VendorTimelines } from './providers/vendor-timeline';
import { twentyiTimeline, twentyiTimelineReader } from './providers/vendor-timeline.twentyi';

/** The vendor of each mode that has one: the sandbox has an account of its own, at an emulator. */
export function openVendors(config: WorkerConfig, lifetime: Lifetime): VendorTimelines {
  const accounts = {
    live: { url: config.VENDOR_URL, key: config.VENDOR_KEY },
    sandbox: { url: config.VENDOR_SANDBOX_URL, key: config.VENDOR_SANDBOX_KEY },
  };
  return openAccounts(accounts, twentyiTimeline, lifetime);
}

/** The same accounts for the process that only reads, with keys that can do no more. */
export function openVendorReaders(config: ServerConfig, lifetime: Lifetime): VendorTimelineReaders {
  const accounts = {
    live: { url: config.VENDOR_URL, key: config.VENDOR_READER_KEY },
    sandbox: { url: config.VENDOR_SANDBOX_URL, key: config.VENDOR_SANDBOX_READER_KEY },
  };
  for (const { url, key } of Object.values(accounts))
    if (url !== undefined && key === undefined)
      throw new Error(
        'VENDOR_READER_KEY is needed with VENDOR_URL, and VENDOR_SANDBOX_READER_KEY with VENDOR_SANDBOX_URL',
      );
  return openAccounts(accounts, twentyiTimelineReader, lifetime);
}

interface Account {
  url: string | undefined;
  key: string | undefined;
}

function openAccounts<Timeline>(
  accounts: Record<Mode, Account>,
  timelineOf: (http: VendorHttp) => Timeline,
  lifetime: Lifetime,
): Partial<Record<Mode, Timeline>> {
  const open = ({ url, key }: Account, mode: Mode): Partial<Record<Mode, Timeline>> => {
    if (url === undefined || key === undefined) return {};
    const http = createVendorHttp({ url, key });
    lifetime.onClose(`${mode} vendor`, () => http.close());
    return { [mode]: timelineOf(http) };
  };
  return { ...open(accounts.live, 'live'), ...open(accounts.sandbox, 'sandbox') };
}

export const hasVendor = (timelines: VendorTimelineReaders): boolean => Object.keys(timelines).length > 0;
