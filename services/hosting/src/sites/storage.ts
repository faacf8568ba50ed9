import type { getSiteStorage as endpoint, SiteStorage as View } from '@drydock/contracts/hosting/sites';
import { type Fullness, storageStateOf, type WatchedStorage } from '@drydock/service/effects';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { HostingDatabase } from '../context/database.store';
import { type CountedPart, readStorage, type SiteStorage } from '../providers/site-host';
import { sitePath } from './site.types';
import { hostUnavailable, readSite } from './site-record';

/** Shows how full the site is. Every field is null on a platform that counts nothing. */
export const getSiteStorage = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const storage = await readStorage(context.siteHosts, site).catch((error: unknown) => {
        throw hostUnavailable(error);
      });
      if (storage === null) return { status: 200, body: { limit_bytes: null, files: null, database: null } };
      const { limitBytes, files, database } = storage;
      const body = {
        limit_bytes: limitBytes,
        files: files && viewPart(files, limitBytes),
        database: database && viewPart(database, limitBytes),
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

const viewPart = (part: CountedPart, limitBytes: number): NonNullable<View['files']> => ({
  state: storageStateOf(fullnessOf(part, limitBytes)),
  used_bytes: part.bytes,
  counted_at: part.countedAt.toISOString(),
});

const fullnessOf = ({ state, bytes }: CountedPart, limitBytes: number): Fullness => ({
  state,
  share: bytes / limitBytes,
});

const severity = ['within', 'full', 'closed'] as const;

/** The worse state and the greater share of the two parts of a site. Null until a part has been counted. */
function fullerOf({ limitBytes, files, database }: SiteStorage): Fullness | null {
  const parts = [files, database].filter((part) => part !== null).map((part) => fullnessOf(part, limitBytes));
  const [first, second] = parts;
  if (first === undefined) return null;
  // After a restart of the agent, the database of a server that sleeps is not counted until somebody uses it.
  if (second === undefined) return { ...first, isPartial: true };
  const state = severity[Math.max(severity.indexOf(first.state), severity.indexOf(second.state))] ?? first.state;
  return { state, share: Math.max(first.share, second.share) };
}

/** The storage of the sites that `list` finds, for `keepWatchingStorage`. */
export const watchedStorage = (
  database: HostingDatabase,
  list: (signal: AbortSignal) => Promise<ReadonlyMap<string, SiteStorage>>,
): WatchedStorage => ({
  database,
  thing: 'site',
  table: 'sites',
  isThere: 'true',
  pathOf: sitePath,
  list: async (signal) => {
    const found = new Map<string, Fullness>();
    for (const [siteId, storage] of await list(signal)) {
      const fullness = fullerOf(storage);
      if (fullness !== null) found.set(siteId, fullness);
    }
    return found;
  },
});
