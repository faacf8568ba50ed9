import { uuidv7 } from 'uuidv7';
import type { BackupStorage } from '../src/providers/backup-storage';
import type { ArchiveAtHand, FencedCallWithProgress, SiteHost, SiteRef } from '../src/providers/site-host';

let fence = 0;

/** The arguments of a call, with a greater fence than the call before. */
export const nextOrder = (signal: AbortSignal = AbortSignal.timeout(60_000)): FencedCallWithProgress => ({
  fence: String(++fence),
  workflowId: 'ssh',
  signal,
  progress: () => undefined,
});

export const newSiteRef = (): SiteRef => ({ siteId: uuidv7(), orgId: uuidv7(), mode: 'live' });

/** Packs the current release of a site. With `parents` the archive is incremental. */
export async function packCurrent(
  driver: SiteHost,
  site: SiteRef,
  storage: BackupStorage,
  parents: readonly ArchiveAtHand[] = [],
): Promise<ArchiveAtHand & { key: string }> {
  const [archiveId, key] = [uuidv7(), `live/${site.siteId}/${parents.length + 1}`];
  const hosted = await driver.describe(site);
  if (hosted === null) throw new Error('the site is not there');
  const sequence = parents.length + 1;
  const to = { sink: storage.sink(key), archiveId, sequence, createdAt: new Date(), expectedRawBytes: null };
  const { manifestMac } = await driver.pack(
    site,
    hosted.currentRelease,
    { ...to, ...(parents.length === 0 ? {} : { parents }) },
    nextOrder(),
  );
  return { source: storage.source(key), archiveId, manifestMac, key };
}
