import type { FencedCall, SiteRef } from './site-host';

/** Looks at a restored site as its visitors and its own code do: over HTTP, and over SQL with the site's role. */
export interface DrillProbe {
  /** SHA-256 of what is served at the path, in hex; null when it is not served with 200. */
  hashServed(site: SiteRef, path: string, signal: AbortSignal): Promise<string | null>;
  /** Rows of a table; null when there is no such table. */
  countRows(site: SiteRef, table: { schema: string; name: string }, call: FencedCall): Promise<number | null>;
}
