import { randomBytes } from 'node:crypto';
import type { SiteHostClient } from '@drydock/agent/site/client';
import type { PackSpec } from '@drydock/agent/site/site-jobs.protocol';
import { deriveKeys, encodeKeys, type RootKey, saltBytes } from '@drydock/archive/format/archive-keys';
import { type ArchiveLink, deriveKeysOf } from '@drydock/archive/read/open-archive';
import {
  type ArchiveToWrite,
  type FencedCallWithProgress,
  linksOf,
  type PackedArchive,
  type SiteRef,
} from './site-host';

export interface LocalTools {
  client: SiteHostClient;
  archiveKey: RootKey;
}

/** The description of an archive for a job of the host: our record of it, and only the keys that open this archive. */
export async function describeArchive(link: ArchiveLink, archiveKey: RootKey): Promise<PackSpec['parents'][number]> {
  const { archiveId, manifestMac } = link.expected;
  return { archive_id: archiveId, manifest_mac: manifestMac, keys: encodeKeys(await deriveKeysOf(link, archiveKey)) };
}

/** Lets the host pack in the site's box; its objects come here and go to the storage. */
export async function packRelease(
  { client, archiveKey }: LocalTools,
  site: SiteRef,
  releaseId: string,
  { sink, archiveId, sequence, createdAt, expectedRawBytes, parents = [] }: ArchiveToWrite,
  { fence, workflowId, signal, progress }: FencedCallWithProgress,
): Promise<PackedArchive> {
  const links = linksOf(site, parents);
  const spec: PackSpec = {
    release_id: releaseId,
    archive_id: archiveId,
    origin: { site_id: site.siteId, organisation_id: site.orgId },
    sequence,
    created_at: createdAt.toISOString(),
    keys: encodeKeys(deriveKeys(archiveKey, randomBytes(saltBytes), archiveId)),
    parents: await Promise.all(links.map((link) => describeArchive(link, archiveKey))),
    expected_raw_bytes: expectedRawBytes,
  };
  const archives = { sources: links.map(({ source }) => source), sink };
  const packed = await client.pack(site.siteId, spec, archives, {
    claim: { fence, workflowId, signal },
    onProgress: progress,
  });
  return {
    manifestMac: packed.manifest_mac,
    checksumSha256: packed.manifest_sha256,
    sizeBytes: packed.size_bytes,
    rawBytes: packed.raw_bytes,
    skipped: packed.skipped,
  };
}
