import type { S3Keys } from '../place';
import type { Api } from './api';
import type { Demo, PartialDemo } from './demo-file';

/**
 * The place of a site on its host. The site host reports it, because the public API shows neither folders nor
 * passwords.
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

/** The tools that a seed may use. */
export interface SeedContext {
  /** The content that earlier seeds have made. */
  demo: PartialDemo;
  /** Keeps a part the moment it is made. */
  keep(more: PartialDemo): void;
  /** The public API, called with this key. @throws before that key was minted */
  api(key: 'live_key' | 'sandbox_key' | 'staff_key' | 'other_org_key'): Api;
  describeSite(siteId: string): Promise<SitePlace>;
  /** Buckets that belong to a customer, at the S3 emulator. */
  customerStorage: { live: S3Keys; sandbox: S3Keys };
  /** The vendor's emulator, where packages are filled without Drydock. */
  vendor: { url: string; token: string };
  /** Runs hosting's command for deleted sites: for what staff do and the API cannot do. */
  hostingCommand(verb: 'hold' | 'purge', deletedSiteId: string): Promise<void>;
  /** The cloud's emulator, and the tokens of its projects. */
  hetzner: { url: string; token: string; projectTokens: { live: string; sandbox: string } };
  /** Runs the keys service's command, which creates a root organisation with this name and its first key. */
  bootstrap(name: string): Promise<Bootstrapped>;
}

/**
 * One part of the demo content. It is called until all its fields are in demo.json. So it consists of calls that can be
 * repeated: each POST has an idempotency key of its own.
 */
export interface Seed {
  /** The thing that is being made, for the terminal. */
  title: string;
  fields: readonly (keyof Demo)[];
  seed(context: SeedContext): Promise<void>;
}
