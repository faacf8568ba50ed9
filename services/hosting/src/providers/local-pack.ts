import { type PackOptions, pack } from '@drydock/archive/pack';
import { directoryRoot, streamRoot } from '@drydock/archive/pack-roots';
import { dumpDatabase } from '@drydock/pg-transfer/dump-database';
import type { SiteHostClient } from '@drydock/site-host/client';
import { type ArchiveToWrite, linksOf, type MovingOrder, type PackedArchive, type SiteRef } from './site-host';

/** The two roots of every site archive. */
export const archiveRoots = { files: 'files', database: 'database' } as const;

export interface LocalTools {
  client: SiteHostClient;
  archiveKey: Buffer;
}

/** Where the bar is half-way when nobody knows how much there is. */
const guessedBytes = 64 * 2 ** 20;

/** Files straight from the release's folder, then its database out of one snapshot, into one archive. Memory does not grow with either. */
export async function packRelease(
  { client, archiveKey }: LocalTools,
  site: SiteRef,
  releaseId: string,
  { sink, archiveId, sequence, createdAt, expectedRawBytes, parents }: ArchiveToWrite,
  { signal, progress }: MovingOrder,
): Promise<PackedArchive> {
  const release = await client.readRelease(site.siteId, releaseId, signal);
  const options: PackOptions = {
    roots: [
      directoryRoot(archiveRoots.files, release.files_dir),
      streamRoot(archiveRoots.database, dumpDatabase({ url: release.database_url, signal })),
    ],
    sink,
    key: archiveKey,
    identity: { archiveId, siteId: site.siteId, orgId: site.orgId, sequence },
    createdAt,
    ...(parents === undefined ? {} : { parent: linksOf(site, parents) }),
    signal,
    onProgress: ({ rawBytes }) => progress(rawBytes / Math.max(expectedRawBytes ?? rawBytes + guessedBytes, rawBytes, 1)),
  };
  const { manifestMac, manifestSha256, sizeBytes, rawBytes, skipped } = await pack(options);
  return { manifestMac, checksumSha256: manifestSha256, sizeBytes, rawBytes, skipped };
}
