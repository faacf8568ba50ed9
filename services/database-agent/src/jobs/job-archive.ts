import type { DumpJob, DumpResult, LoadDumpJob, VerifyDumpJob } from '@drydock/agent/database';
import { type ProgramContext, remoteArchives } from '@drydock/agent/jobs';
import {
  decodeKeys,
  type EntryInTurn,
  entriesInTurn,
  type OpenedEntry,
  openEntries,
  pack,
  type StreamEntry,
  streamRoot,
} from '@drydock/archive';

/** The only root in the archive of a database. */
const root = 'database';

export type Archives = ReturnType<typeof remoteArchives>;

/** Opens the job's channel to the archives while `work` runs. */
export async function withArchives<T>(
  { openChannel }: ProgramContext,
  work: (archives: Archives) => Promise<T>,
): Promise<T> {
  const archives = remoteArchives(openChannel());
  try {
    return await work(archives);
  } finally {
    archives.end();
  }
}

interface Dumped {
  databaseId: string;
  archive: DumpJob;
  expectedBytes: number;
  progress: (share: number) => void;
}

/** Writes a dump into the archive while the dump is made. So the memory that is used does not grow with the dump. */
export async function packDump(
  { sink }: Archives,
  entries: AsyncIterable<StreamEntry>,
  { databaseId, archive, expectedBytes, progress }: Dumped,
): Promise<Omit<DumpResult, 'major'>> {
  const packed = await pack({
    roots: [streamRoot(root, entries)],
    sink,
    key: [decodeKeys(archive.keys)],
    identity: { archiveId: archive.archive_id, siteId: databaseId, orgId: archive.org_id, sequence: archive.sequence },
    createdAt: new Date(archive.created_at),
    onProgress: ({ rawBytes }) => progress(rawBytes / Math.max(expectedBytes, rawBytes, 1)),
  });
  const { manifestMac, manifestSha256, sizeBytes, rawBytes } = packed;
  return { manifest_mac: manifestMac, checksum_sha256: manifestSha256, size_bytes: sizeBytes, raw_bytes: rawBytes };
}

/**
 * Reads an archive section by section. `siteId` is the id of the database from which the archive was taken. The bytes
 * of unwanted sections are not read.
 */
export function readSections(
  archives: Archives,
  siteId: string,
  archive: VerifyDumpJob | LoadDumpJob,
  isWanted: (path: string) => boolean = () => true,
): AsyncIterable<EntryInTurn> {
  const expected = { archiveId: archive.archive_id, siteId, orgId: archive.org_id, manifestMac: archive.manifest_mac };
  const chain = [{ source: archives.source(0), expected }];
  return entriesInTurn(onlyWanted(openEntries({ chain, key: [decodeKeys(archive.keys)], root }), isWanted));
}

async function* onlyWanted(
  entries: AsyncIterable<OpenedEntry>,
  isWanted: (path: string) => boolean,
): AsyncGenerator<OpenedEntry> {
  for await (const entry of entries) if (isWanted(entry.path)) yield entry;
}
