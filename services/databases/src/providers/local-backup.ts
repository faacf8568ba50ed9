import { randomBytes, randomUUID } from 'node:crypto';
import type { DatabaseHostClient } from '@drydock/agent/database/client';
import { deriveKeys, encodeKeys, type RootKey } from '@drydock/archive/format/archive-keys';
import { deriveKeysOf } from '@drydock/archive/read/open-archive';
import type { Major } from '@drydock/contracts/databases/major';
import { claimOf } from './claim-of';
import type {
  ArchiveToVerify,
  ArchiveToWrite,
  DatabaseRef,
  FencedCallWithProgress,
  PackedArchive,
  Restore,
  TriedSchema,
  UpgradeName,
  VerifiedRestore,
} from './database-provider';

export interface LocalTools {
  client: DatabaseHostClient;
  archiveKey: RootKey;
}

const saltBytes = 16;

/** Lets the host dump and pack, with the keys of this one archive; its objects come here and are stored from here. */
export async function packDatabase(
  { client, archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  { sink, archiveId, sequence, createdAt }: ArchiveToWrite,
  call: FencedCallWithProgress,
  replacedBy: UpgradeName | undefined,
): Promise<PackedArchive> {
  const keys = encodeKeys(deriveKeys(archiveKey, randomBytes(saltBytes), archiveId));
  const of = replacedBy === undefined ? {} : { replaced_by: replacedBy.upgradeId };
  const spec = { org_id: orgId, archive_id: archiveId, keys, sequence, created_at: createdAt.toISOString(), ...of };
  const wanted = {
    jobId: randomUUID(),
    spec,
    served: { sources: [], sink },
    onProgress: (share: number) => call.progress(share),
  };
  const packed = await client.dump(databaseId, wanted, claimOf(call));
  return {
    major: packed.major,
    manifestMac: packed.manifest_mac,
    checksumSha256: packed.checksum_sha256,
    sizeBytes: packed.size_bytes,
    rawBytes: packed.raw_bytes,
  };
}

/**
 * Loads an archive into a scratch instance of the host, which is removed in any case. The host gets the keys of this
 * archive only after its manifest was found to be the expected one.
 */
export async function verifyRestore(
  tools: LocalTools,
  database: DatabaseRef,
  major: Major,
  archive: ArchiveToVerify,
  call: FencedCallWithProgress,
): Promise<VerifiedRestore> {
  const wanted = await jobOf(tools, database, major, archive, call);
  const {
    tables,
    rows,
    read_from: readFrom,
    findings,
  } = await tools.client.verifyDump(database.databaseId, wanted, claimOf(call));
  return { tables, rows, readFrom, findings };
}

/** Loads the schema alone into a scratch instance. */
export async function trySchema(
  tools: LocalTools,
  database: DatabaseRef,
  major: Major,
  archive: ArchiveToVerify,
  call: FencedCallWithProgress,
): Promise<TriedSchema> {
  return tools.client.tryDump(database.databaseId, await jobOf(tools, database, major, archive, call), claimOf(call));
}

async function jobOf(
  { archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  major: Major,
  { source, archiveId, manifestMac }: ArchiveToVerify,
  call: FencedCallWithProgress,
) {
  const expected = { archiveId, siteId: databaseId, orgId, manifestMac };
  const keys = encodeKeys(await deriveKeysOf({ source, expected }, archiveKey));
  const spec = { org_id: orgId, archive_id: archiveId, keys, manifest_mac: manifestMac, major };
  return {
    jobId: randomUUID(),
    spec,
    served: { sources: [source] },
    onProgress: (share: number) => call.progress(share),
  };
}

/** Makes a target instance and loads the archive into it. */
export async function stageRestore(
  { client, archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  { upgradeId, major, sourceId, archive: { source, archiveId, manifestMac } }: Restore,
  call: FencedCallWithProgress,
): Promise<VerifiedRestore | null> {
  const keys = encodeKeys(
    await deriveKeysOf({ source, expected: { archiveId, siteId: sourceId, orgId, manifestMac } }, archiveKey),
  );
  const claim = claimOf(call);
  await client.prepareTarget(databaseId, { upgrade_id: upgradeId, to_major: major, path: 'restore' }, claim);
  const spec = {
    org_id: orgId,
    archive_id: archiveId,
    keys,
    manifest_mac: manifestMac,
    source_id: sourceId,
    upgrade_id: upgradeId,
  };
  const wanted = {
    jobId: randomUUID(),
    spec,
    served: { sources: [source] },
    onProgress: (share: number) => call.progress(share),
  };
  const loaded = await client.loadDump(databaseId, wanted, claim);
  return loaded && { tables: loaded.tables, rows: loaded.rows, readFrom: loaded.read_from, findings: loaded.findings };
}
