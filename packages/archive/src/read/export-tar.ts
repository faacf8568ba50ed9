import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import tar, { type Header, type Pack } from 'tar-stream';
import { refuse } from '../format/archive-error';
import type { ArchiveKey } from '../format/archive-keys';
import { type ArchiveLimits, completeLimits } from '../format/archive-limits';
import type { Entry } from '../format/entry';
import { textOfBytes } from '../format/path-bytes';
import { checkTree } from './check-tree';
import { mergeTree } from './merge-tree';
import { type ArchiveLink, type OpenArchive, openChain } from './open-archive';
import { openEntries } from './open-entries';
import { TreeContents } from './read-contents';

type EntryHeader = Partial<Header> & Pick<Header, 'name'>;

export interface ExportTarOptions {
  chain: readonly ArchiveLink[];
  key: ArchiveKey;
  limits?: Partial<ArchiveLimits>;
  signal?: AbortSignal;
}

/**
 * Writes all roots as one tar stream (`<root>/<path>`, with PAX records for nanoseconds). The index of every tree is
 * checked before the first byte, and the index of a stream root before its first entry. If a check fails later, the
 * stream is destroyed, so a tar that ended normally is complete. @throws ArchiveError
 */
export async function exportTar(options: ExportTarOptions, target: Writable): Promise<void> {
  const limits = completeLimits(options.limits);
  const signal = options.signal && { signal: options.signal };
  const archives = await openChain(options.chain, options.key, limits);
  const newest = archives.at(-1) ?? refuse('chain_gap', 'a chain without archives');
  for (const root of newest.manifest.roots) {
    if (root.kind === 'tree') await checkTree(archives, root.name, { limits, folds: false, ...signal });
  }
  const packer = tar.pack();
  const filling = fillTar(packer, archives, options).catch((error: unknown) => {
    packer.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  });
  const [filled, piped] = await Promise.allSettled([
    filling,
    pipeline(Readable.from(packer, { objectMode: false }), target, signal ?? {}),
  ]);
  if (filled.status === 'rejected') throw filled.reason;
  if (piped.status === 'rejected') throw piped.reason;
}

async function fillTar(packer: Pack, archives: readonly OpenArchive[], options: ExportTarOptions): Promise<void> {
  const newest = archives.at(-1) ?? refuse('chain_gap', 'a chain without archives');
  for (const root of newest.manifest.roots) {
    await addEntry(packer, {
      name: `${root.name}/`,
      type: 'directory',
      mode: 0o700,
      mtime: new Date(newest.manifest.created_at),
    });
    if (root.kind === 'tree') await addTree(packer, archives, root.name, options.signal);
    else await addStreams(packer, root.name, newest.manifest.created_at, options);
  }
  packer.finalize();
}

async function addTree(
  packer: Pack,
  archives: readonly OpenArchive[],
  root: string,
  signal?: AbortSignal,
): Promise<void> {
  const contents = new TreeContents(archives);
  for await (const batch of mergeTree(archives, root, signal)) {
    for (const item of batch) {
      const content = item.entry.type === 'file' ? contents.read(item) : undefined;
      await addEntry(packer, headerOf(root, item.entry), content);
    }
  }
}

async function addStreams(packer: Pack, root: string, createdAt: string, options: ExportTarOptions): Promise<void> {
  for await (const entry of openEntries({ ...options, root })) {
    const name = `${root}/${entry.path}`;
    await addEntry(
      packer,
      { name, type: 'file', mode: 0o600, mtime: new Date(createdAt), size: entry.size },
      entry.content(),
    );
  }
}

function headerOf(root: string, entry: Entry): EntryHeader {
  const type =
    entry.type === 'hardlink'
      ? 'link'
      : entry.type === 'tombstone'
        ? refuse('mismatch', 'tombstone in a tree')
        : entry.type;
  const nanoseconds = String(entry.mtimeNanoseconds).padStart(9, '0');
  const linkname = textOfBytes(entry.type === 'hardlink' ? `${root}/${entry.link}` : entry.link);
  return {
    name: `${root}/${textOfBytes(entry.path)}${entry.type === 'directory' ? '/' : ''}`,
    type,
    mode: entry.mode,
    size: entry.size,
    mtime: new Date(Math.max(0, entry.mtimeSeconds) * 1000),
    ...(linkname !== '' && { linkname }),
    ...(entry.mtimeSeconds >= 0 &&
      entry.mtimeNanoseconds > 0 && { pax: { mtime: `${entry.mtimeSeconds}.${nanoseconds}` } }),
  };
}

/** Resolves when the entry is written. Callers wait for this, so that entries do not pile up in memory. */
async function addEntry(packer: Pack, header: EntryHeader, content?: AsyncIterable<Buffer>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const sink = packer.entry(header, (error) => (error ? reject(error) : resolve()));
    if (content === undefined || header.size === 0) {
      if (header.type === 'file') sink.end(null);
      return;
    }
    writeContent(sink, content).catch(reject);
  });
}

async function writeContent(sink: ReturnType<Pack['entry']>, content: AsyncIterable<Buffer>): Promise<void> {
  for await (const piece of content) {
    if (sink.destroyed) return; // the callback of `entry` gets the reason
    if (!sink.write(Buffer.from(piece))) await drained(sink);
  }
  sink.end(null);
}

/** Resolves when the sink accepts more data, or has closed. */
function drained(sink: ReturnType<Pack['entry']>): Promise<void> {
  return new Promise((resolve) => {
    sink.once('drain', resolve);
    sink.once('close', resolve);
  });
}
