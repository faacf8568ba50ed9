import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { PackResult, PackSpec, StageResult } from '@drydock/agent/site';
import { type ArchiveLink, deriveKeys, encodeKeys, folderSink, folderSource } from '@drydock/archive';
import { claim, type Filled, type TestHost } from './host';

export const archiveKey = randomBytes(32);

export interface TestArchive {
  link: ArchiveLink;
  spec: PackSpec;
  packed: PackResult;
}

/** Packs a site's release into a folder, by the control calls that a worker makes. */
export async function packSite(
  { client }: Pick<TestHost, 'client'>,
  siteId: string,
  {
    releaseId,
    folder,
    fence,
    organisation = 'org',
  }: { releaseId: string; folder: string; fence: number; organisation?: string },
): Promise<TestArchive> {
  const archiveId = randomUUID();
  const spec: PackSpec = {
    release_id: releaseId,
    archive_id: archiveId,
    origin: { site_id: siteId, organisation_id: organisation },
    sequence: 1,
    created_at: new Date().toISOString(),
    keys: encodeKeys(deriveKeys(archiveKey, randomBytes(16), archiveId)),
    parents: [],
    expected_raw_bytes: null,
  };
  const packed = await client.pack(siteId, spec, { sources: [], sink: folderSink(folder) }, { claim: claim(fence) });
  const expected = { archiveId, siteId, orgId: organisation, manifestMac: packed.manifest_mac };
  return { link: { source: folderSource(folder), expected }, spec, packed };
}

/** Stages an archive on a site, by the control calls that a worker makes. */
export async function stageSite(
  { client }: Pick<TestHost, 'client'>,
  siteId: string,
  { link, spec }: TestArchive,
  { releaseId, fence, signal }: { releaseId: string; fence: number; signal?: AbortSignal },
): Promise<StageResult> {
  const chain = [{ archive_id: spec.archive_id, manifest_mac: link.expected.manifestMac, keys: spec.keys }];
  const given = { release_id: releaseId, origin: spec.origin, chain };
  return client.stage(
    siteId,
    given,
    { sources: [link.source] },
    { claim: { ...claim(fence), ...(signal && { signal }) } },
  );
}

/**
 * Backs the live release up and stages the backup as a new release. Resolves with the place of the new release's
 * content.
 */
export async function stageCopy(
  host: Pick<TestHost, 'client'>,
  siteId: string,
  releaseId: string,
  fence: number,
): Promise<Filled> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-copy-'));
  try {
    const { current_release: live } = await host.client.readSite(siteId);
    const archive = await packSite(host, siteId, {
      releaseId: live ?? '',
      folder: path.join(folder, 'archive'),
      fence,
    });
    await stageSite(host, siteId, archive, { releaseId, fence });
    return await host.client.placeOfRelease(siteId, releaseId);
  } finally {
    await rm(folder, { recursive: true });
  }
}
