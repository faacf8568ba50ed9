import type { Lifetime } from '@drydock/service-kit/shutdown';
import type { ServerConfig, WorkerConfig } from './config';
import { createVendorHttp, type VendorHttp } from './providers/vendor-http';
import type { VendorTimelines } from './providers/vendor-timeline';
import { twentyiTimeline } from './providers/vendor-timeline.twentyi';

/** The vendor of each mode that one is configured for: the sandbox has an account of its own, at a stand-in. */
export function openVendors(config: ServerConfig | WorkerConfig, lifetime: Lifetime): VendorTimelines {
  const open = (url: string | undefined, key: string | undefined, name: string): VendorHttp | undefined => {
    if (url === undefined || key === undefined) return undefined;
    const http = createVendorHttp({ url, key });
    lifetime.onClose(name, () => http.close());
    return http;
  };
  const live = open(config.VENDOR_URL, config.VENDOR_KEY, 'vendor');
  const sandbox = open(config.VENDOR_SANDBOX_URL, config.VENDOR_SANDBOX_KEY, 'sandbox vendor');
  return {
    ...(live === undefined ? {} : { live: twentyiTimeline(live) }),
    ...(sandbox === undefined ? {} : { sandbox: twentyiTimeline(sandbox) }),
  };
}

export const hasVendor = (timelines: VendorTimelines): boolean => Object.keys(timelines).length > 0;
