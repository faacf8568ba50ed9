import type { S3Keys } from '../place';
import type { Api } from './api';
import type { Demo, PartialDemo } from './demo-file';

/**
 * The address, folder and database of a site. They come from the site agent, because the public API shows neither
 * folders nor passwords.
 */
export interface SitePlace {
  url: string;
  files_dir: string;
  database_url: string;
}

export interface Bootstrapped {
  org_id: string;
  key_id: string;
  token: string;
}

export interface SeedContext {
  demo: PartialDemo;
  /** Adds fields to the demo and saves them at once, in demo.partial.json. */
  keep(more: PartialDemo): void;
  /** Returns a client of the public API with this key. @throws if the key does not exist yet */
  api(key: 'live_key' | 'sandbox_key' | 'staff_key' | 'other_org_key'): Api;
  describeSite(siteId: string): Promise<SitePlace>;
  /** The buckets of a customer at the S3 emulator. */
  customerStorage: { live: S3Keys; sandbox: S3Keys };
  /** The emulator of the vendor. A seed fills packages there, because Drydock does not write their content. */
  vendor: { url: string; token: string };
  /** Runs hosting's command for deleted sites, because the API can neither hold nor purge a deleted site. */
  hostingCommand(verb: 'hold' | 'purge', deletedSiteId: string): Promise<void>;
  hetzner: { url: string; token: string; projectTokens: { live: string; sandbox: string } };
  /**
   * Creates a root organisation with a key, by a command of the keys service. If the organisation exists, mints another
   * key for it. Only this call shows the token of the key.
   */
  bootstrap(name: string): Promise<Bootstrapped>;
}

/**
 * One part of the demo content. A seed runs at each start until it has succeeded and all its fields are in demo.json.
 * So it must be repeatable: each of its POSTs to the API has an idempotency key.
 */
export interface Seed {
  /** The name of the part, for the terminal. */
  title: string;
  fields: readonly (keyof Demo)[];
  seed(context: SeedContext): Promise<void>;
}
