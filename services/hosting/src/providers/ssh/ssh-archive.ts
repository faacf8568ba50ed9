import { type SkippedPath, SkippedPaths } from '@drydock/agent/site';
import {
  ArchiveError,
  type ArchiveLink,
  changedWhileRead,
  linkIntoRelease,
  lostParts,
  openEntries,
  pack,
  type RootKey,
  type StreamEntry,
  streamRoot,
  verifyArchive,
  verifyChain,
} from '@drydock/archive';
import {
  type ArchiveToStage,
  type ArchiveToWrite,
  type FencedCallWithProgress,
  linksOf,
  type PackedArchive,
  SiteHostError,
  type SiteRef,
  type StagedRelease,
} from '../site-host';
import type { DatabaseEngine } from './remote-scripts';
import { databaseOf, databaseServerOf, runOnSite, streamFromSite } from './run-on-site';
import type { SshArchiveTools } from './ssh-connection';

/**
 * An archive of a site over ssh has two roots, files and database. Each root has one stream, which is the output of a
 * program on the host. The path of the stream tells which program has written it.
 */
const filesStream = { root: 'files', path: 'files.tar' } as const;

const dumpPaths: Readonly<Record<DatabaseEngine, string>> = { postgres: 'database.dump', mysql: 'database.sql' };

const databaseStream = (engine: DatabaseEngine) => ({ root: 'database', path: dumpPaths[engine] }) as const;

/** If the real size is unknown, the progress is one half after this many bytes. */
const guessedBytes = 64 * 2 ** 20;

const skippedLine = new RegExp(
  String.raw`^tar: \./(.+): ((?:socket|device) ignored|link into a release|Warning: (?:Cannot|Read error) .+|` +
    String.raw`file changed as we read it|File shrank by \d+ bytes?; padding with zeros)$`,
);

/**
 * The path that tar has left out, or that changed while tar read it, in a line of tar's stderr. Null for any other
 * line.
 */
export function skippedIn(line: string): SkippedPath | null {
  const [, path, word] = skippedLine.exec(line) ?? [];
  if (path === undefined || word === undefined) return null;
  if (word.endsWith(' ignored')) return { path, reason: 'a socket or a device' };
  if (word === 'link into a release') return { path, reason: linkIntoRelease };
  return { path, reason: word.startsWith('Warning: ') ? word.replace('Warning: ', '') : changedWhileRead };
}

/**
 * For some failures GNU tar names the call first and the file last: `tar: acl_set_file_at: Cannot set POSIX ACLs for
 * file './a': Operation not permitted`.
 */
const lostOfFile = /^tar: \w+: (?:Warning: )?Cannot (?:set|drop) .+? for file '(?:\.\/)?(.+)': [^']+$/;
const lostOfPath = /^tar: (?:\.\/)?(.+): (?:Warning: )?Cannot (?:set|lset|fset|acl_)/;

/** The path that tar has not restored completely, in a line of tar's stderr. Null for any other line. */
function lostIn(line: string): SkippedPath | null {
  const [, path] = lostOfFile.exec(line) ?? lostOfPath.exec(line) ?? [];
  return path === undefined ? null : { path, reason: lostParts.refused };
}

async function* oneEntry(path: string, content: AsyncIterable<Buffer>): AsyncGenerator<StreamEntry> {
  yield { path, content };
}

/**
 * Packs the tar of the files and then the dump of the database straight from the host into one archive. Neither the
 * host nor this process keeps the tar or the dump on disk.
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

/**
 * Checks the whole chain, apart from the segments of superseded streams. Resolves with the `raw_bytes` of the newest
 * archive. @throws ArchiveError
 */
async function verifyAll(chain: readonly ArchiveLink[], key: RootKey, signal: AbortSignal): Promise<number> {
  const options = { contents: true, signal };
  const [only] = chain;
  if (only !== undefined && chain.length === 1) {
    const manifest = await verifyArchive(only.source, key, only.expected, options);
    if (manifest.parent_mac !== null)
      throw new ArchiveError('chain_gap', 'an increment without the archives before it');
    return manifest.raw_bytes;
  }
  return (await verifyChain(chain, key, options)).at(-1)?.raw_bytes ?? 0;
}

interface Content {
  chain: readonly ArchiveLink[];
  key: RootKey;
  signal: AbortSignal;
  onBytes(count: number): void;
}

/**
 * The only stream of a root.
 * @throws ArchiveError, and SiteHostError `unsupported` for an archive of another platform or database
 */
async function* contentOf(
  { root, path }: { root: string; path: string },
  { chain, key, signal, onBytes }: Content,
): AsyncGenerator<Buffer> {
  let isFound = false;
  for await (const entry of openEntries({ chain, key, root, signal })) {
    if (isFound || entry.path !== path)
      throw new SiteHostError('unsupported', `${root} of this archive is ${entry.path}, and not ${path}`);
    isFound = true;
    for await (const piece of entry.content()) {
      onBytes(piece.length);
      // The reader reuses the memory of a piece while the connection may still hold it, so the piece is copied.
      yield Buffer.from(piece);
    }
  }
  if (!isFound) throw new ArchiveError('unknown_root', `${root} of this archive is empty`);
}

/**
 * GNU tar creates a file with its final mode before it sets its attributes. So an account that is not root cannot
 * restore the attributes of a read-only file. If tar fails with this message, the files are written again as `owner`.
 */
const closedToTar = /^tar: setxattr(?:at)?: Cannot set /;

/**
 * Stages an archive over ssh. The whole chain is verified before the first byte is sent, and each byte again as it is
 * sent.
 */
export async function stageOverSsh(
  tools: SshArchiveTools,
  site: SiteRef,
  releaseId: string,
  { parents = [], origin = site, contents = 'all', ...newest }: ArchiveToStage,
  { fence, signal, progress }: FencedCallWithProgress,
): Promise<StagedRelease> {
  signal.throwIfAborted();
  const { archiveKey: key } = tools;
  const chain = linksOf(origin, [...parents, newest]);
  const rawBytes = await verifyAll(chain, key, signal);
  const args = [databaseOf(site, releaseId)];
  const call = { site, releaseId, fence, signal };
  const beginStage = () =>
    runOnSite(tools, { ...call, script: 'beginStage', args: [...args, String(rawBytes), contents] });
  await beginStage();
  let sent = 0;
  const onBytes = (count: number): void => {
    sent += count;
    progress(Math.min(sent / Math.max(rawBytes, 1), 1));
  };
  const database = databaseStream(databaseServerOf(tools.config).engine);
  const content = { chain, key, signal, onBytes };
  const writeFiles = async (as: 'account' | 'owner') => {
    const lost = new SkippedPaths();
    let isClosed = false;
    const onErrorLine = (line: string): void => {
      const path = lostIn(line);
      if (path !== null) lost.add(path);
      isClosed ||= closedToTar.test(line);
    };
    try {
      await runOnSite(tools, {
        ...call,
        script: 'writeFiles',
        args: [as],
        input: contentOf(filesStream, content),
        onErrorLine,
      });
    } catch (error) {
      if (!isClosed || as === 'owner') throw error;
      return null;
    }
    return lost;
  };
  let lost = await writeFiles('account');
  if (lost === null) {
    sent = 0;
    await beginStage();
    lost = await writeFiles('owner');
  }
  if (contents === 'all')
    await runOnSite(tools, { ...call, script: 'writeDatabase', args, input: contentOf(database, content) });
  await runOnSite(tools, { ...call, script: 'endStage', args: [...args, contents] });
  return { lost: lost?.result ?? { count: 0, paths: [] }, database: [] };
}
