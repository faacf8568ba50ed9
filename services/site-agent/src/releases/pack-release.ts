import { Readable } from 'node:stream';
import { archiveRoots, type PackResult, type PackSpec, type ProgramDatabase, SkippedPaths } from '@drydock/agent/site';
import {
  type ArchiveLink,
  type ArchiveSink,
  type DerivedKeys,
  describeFolder,
  directoryRoot,
  pack,
  type StreamEntry,
  streamRoot,
} from '@drydock/archive';
import { dumpOf } from '../database/dump-and-load';

export interface ReleaseToPack {
  spec: PackSpec;
  filesDir: string;
  /** See {@link directoryRoot}. */
  releasesDir: string;
  database: ProgramDatabase;
  key: readonly DerivedKeys[];
  parents: readonly ArchiveLink[];
  sink: ArchiveSink;
  progress(share: number): void;
}

/** The size at which the progress shows half when the real size is not known. */
const guessedBytes = 64 * 2 ** 20;

async function* folderEntry(filesDir: string, skipped: SkippedPaths): AsyncGenerator<StreamEntry> {
  const described = describeFolder(filesDir, (reason) => skipped.add({ path: '.', reason }));
  yield { path: 'folder', content: Readable.from([described]) };
}

/**
 * Packs files straight from the release's folder, then its database from one snapshot, into one archive. Memory does
 * not grow with either.
 */
export async function packRelease({
  spec,
  filesDir,
  releasesDir,
  database,
  key,
  parents,
  sink,
  progress,
}: ReleaseToPack): Promise<PackResult> {
  const skipped = new SkippedPaths();
  const packed = await pack({
    roots: [
      directoryRoot(archiveRoots.files, filesDir, releasesDir),
      streamRoot(archiveRoots.database, dumpOf(database, new AbortController().signal)),
      streamRoot(archiveRoots.folder, folderEntry(filesDir, skipped)),
    ],
    sink,
    key,
    identity: {
      archiveId: spec.archive_id,
      siteId: spec.origin.site_id,
      orgId: spec.origin.organisation_id,
      sequence: spec.sequence,
    },
    createdAt: new Date(spec.created_at),
    ...(parents.length > 0 && { parent: parents }),
    onProgress: ({ rawBytes }) =>
      progress(rawBytes / Math.max(spec.expected_raw_bytes ?? rawBytes + guessedBytes, rawBytes, 1)),
    onSkip: skipped.add,
  });
  return {
    manifest_mac: packed.manifestMac,
    manifest_sha256: packed.manifestSha256,
    size_bytes: packed.sizeBytes,
    raw_bytes: packed.rawBytes,
    entries: packed.entries,
    skipped: skipped.result,
  };
}
