import { type SkippedPath, SkippedPaths } from '@drydock/agent/site';
import { changedWhileRead, linkIntoRelease, lostParts, pack, type StreamEntry, streamRoot } from '@drydock/archive';
import {
  type ArchiveToWrite,
  type FencedCallWithProgress,
  linksOf,
  type PackedArchive,
  type SiteRef,
} from '../site-host';
import type { DatabaseEngine } from './remote-scripts';
import { databaseOf, databaseServerOf, streamFromSite } from './ssh-site';
import type { SshArchiveTools } from './ssh-tools';

/**
 * The two roots of a site's archive are one stream each, as the host's own tools write and read them. The path names
 * the tool.
 */
export const filesStream = { root: 'files', path: 'files.tar' } as const;

const dumpPaths: Readonly<Record<DatabaseEngine, string>> = { postgres: 'database.dump', mysql: 'database.sql' };

export const databaseStream = (engine: DatabaseEngine) => ({ root: 'database', path: dumpPaths[engine] }) as const;

/** The size at which the progress shows half when the real size is not known. */
const guessedBytes = 64 * 2 ** 20;

const skippedLine =
  /^tar: \.\/(.+): ((?:socket|device) ignored|link into a release|file changed as we read it|Warning: Cannot .+)$/;

/**
 * The path that a line of the host's tar says is not in it, or not as it was at one moment; null for any other line.
 */
export function skippedIn(line: string): SkippedPath | null {
  const [, path, word] = skippedLine.exec(line) ?? [];
  if (path === undefined || word === undefined) return null;
  if (word.endsWith(' ignored')) return { path, reason: 'a socket or a device' };
  if (word === 'link into a release') return { path, reason: linkIntoRelease };
  return { path, reason: word.startsWith('file changed') ? changedWhileRead : word.replace('Warning: ', '') };
}

/**
 * GNU tar names an attribute's call first and its file last:
 * `tar: acl_set_file_at: Cannot set POSIX ACLs for file './a': Operation not permitted`.
 */
const lostOfFile = /^tar: \w+: (?:Warning: )?Cannot (?:set|drop) .+? for file '(?:\.\/)?(.+)': [^']+$/;
const lostOfPath = /^tar: (?:\.\/)?(.+): (?:Warning: )?Cannot (?:set|lset|fset|acl_)/;

/** The path that a line of the host's tar says was not restored whole; null for any other line. */
export function lostIn(line: string): SkippedPath | null {
  const [, path] = lostOfFile.exec(line) ?? lostOfPath.exec(line) ?? [];
  return path === undefined ? null : { path, reason: lostParts.refused };
}

async function* oneEntry(path: string, content: AsyncIterable<Buffer>): AsyncGenerator<StreamEntry> {
  yield { path, content };
}

/**
 * Packs the host's tar of the files, then its pg_dump, straight into one archive. Neither side stores them in between.
 */
export async function packOverSsh(
  tools: SshArchiveTools,
  site: SiteRef,
  releaseId: string,
  { sink, archiveId, sequence, createdAt, expectedRawBytes, parents }: ArchiveToWrite,
  { signal, progress }: FencedCallWithProgress,
): Promise<PackedArchive> {
  const skipped = new SkippedPaths();
  const onErrorLine = (line: string): void => {
    const path = skippedIn(line);
    if (path !== null) skipped.add(path);
  };
  const database = databaseStream(databaseServerOf(tools.config).engine);
  const readFiles = streamFromSite(tools, { script: 'readFiles', site, releaseId, signal, onErrorLine });
  const args = [databaseOf(site, releaseId)];
  const readDatabase = streamFromSite(tools, { script: 'readDatabase', site, releaseId, args, signal });
  const { manifestMac, manifestSha256, sizeBytes, rawBytes } = await pack({
    roots: [
      streamRoot(filesStream.root, oneEntry(filesStream.path, readFiles)),
      streamRoot(database.root, oneEntry(database.path, readDatabase)),
    ],
    sink,
    key: tools.archiveKey,
    identity: { archiveId, siteId: site.siteId, orgId: site.orgId, sequence },
    createdAt,
    ...(parents === undefined ? {} : { parent: linksOf(site, parents) }),
    signal,
    onProgress: ({ rawBytes: bytes }) => progress(bytes / Math.max(expectedRawBytes ?? bytes + guessedBytes, bytes, 1)),
  });
  return { manifestMac, checksumSha256: manifestSha256, sizeBytes, rawBytes, skipped: skipped.result };
}
