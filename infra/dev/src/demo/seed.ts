import type { S3Keys } from '../place';
import type { Api } from './api';
import type { Demo, PartialDemo } from './demo-file';

/**
 * The address, folder and database of a site. The site host reports them, because the public API shows neither folders
 * nor passwords.
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
  /** The content that exists so far. */
  demo: PartialDemo;
  /** Saves a part as soon as it exists. */
  keep(more: PartialDemo): void;
  /** Returns a client of the public API that sends this key. @throws before the key exists */
  api(key: 'live_key' | 'sandbox_key' | 'staff_key' | 'other_org_key'): Api;
  describeSite(siteId: string): Promise<SitePlace>;
  /** Buckets of a customer at the S3 emulator. */
  customerStorage: { live: S3Keys; sandbox: S3Keys };
  /** The vendor's emulator. Packages are filled there, because Drydock does not change their content. */
  vendor: { url: string; token: string };
  /** Runs hosting's command for deleted sites, because the API can neither hold nor purge a deleted site. */
  hostingCommand(verb: 'hold' | 'purge', deletedSiteId: string): Promise<void>;
  /** The cloud's emulator, and the tokens of its projects. */
  hetzner: { url: string; token: string; projectTokens: { live: string; sandbox: string } };
  /** Runs the command of the keys service that creates a root organisation and its first key. */
  bootstrap(name: string): Promise<Bootstrapped>;
}

/**
 * Creates one part of the demo content. The seed runs at each start until all its fields are in demo.json. So each of
 * its POSTs has its own idempotency key.
 */
export interface Seed {
  /** The name of the part, for the terminal. */
  title: string;
  fields: readonly (keyof Demo)[];
  seed(context: SeedContext): Promise<void>;
}
