import { createHash, randomBytes } from 'node:crypto';
import { noAttributes } from '../files/metadata';
import { refuse } from '../format/archive-error';
import { type ArchiveKey, type ArchiveKeys, archiveKeysOf, saltBytes, saltOf } from '../format/archive-keys';
import { type ArchiveLimits, completeLimits, defaultLimits, formatBounds } from '../format/archive-limits';
import { type ArchiveSink, manifestName } from '../format/archive-objects';
import { type Entry, pathProblem } from '../format/entry';
import { type Manifest, type ManifestRoot, manifestSchema, RootTally, sealManifest } from '../format/manifest';
import { bytesOfText } from '../format/path-bytes';
import { ParentTree } from '../read/merge-tree';
import { type ArchiveLink, type OpenArchive, openChain } from '../read/open-archive';
import { createPace, type Pace } from '../read/pace';
import { BlockWriter } from './block-writer';
import type { PackRoot, SkippedPath, StreamEntry } from './pack-roots';
import { packTree } from './pack-tree';

interface StreamPacking {
  entries: AsyncIterable<StreamEntry>;
  writer: BlockWriter;
  tally: RootTally;
  pace: Pace;
  createdAt: Date;
}

/** Packs named streams in their order. A stream has no mode or time, so it gets 0600 and the time of the archive. */
async function packStream(packing: StreamPacking): Promise<void> {
  const seen = new Set<string>();
  for await (const source of packing.entries) {
    const path = bytesOfText(source.path);
    const problem = pathProblem(path, defaultLimits.depthMax);
    if (problem !== null) throw new TypeError(`${problem}: ${source.path}`);
    if (seen.has(path)) throw new TypeError(`the same path twice: ${source.path}`);
    seen.add(path);
    if (seen.size > formatBounds.streamEntries) refuse('limit_exceeded', 'too many streams in one root');
    const entry = await packContent(packing, path, source.content);
    packing.tally.count(entry);
    await packing.writer.add(entry);
  }
}

async function packContent(packing: StreamPacking, path: string, content: AsyncIterable<Buffer>): Promise<Entry> {
  const digest = createHash('sha256');
  let size = 0;
  for await (const piece of content) {
    await packing.pace();
    digest.update(piece);
    await packing.writer.append(piece);
    size += piece.length;
  }
  const seconds = Math.floor(packing.createdAt.getTime() / 1000);
  const time = { mtimeSeconds: seconds, mtimeNanoseconds: (packing.createdAt.getTime() - seconds * 1000) * 1_000_000 };
  return {
    type: 'file',
    path,
    mode: 0o600,
    ...time,
    size,
    linked: false,
    sparse: false,
    sha256: digest.digest(),
    link: '',
    attributes: noAttributes,
  };
}

interface ArchiveIdentity {
  archiveId: string;
  siteId: string;
  orgId: string;
  /** A number greater than the sequence of every earlier archive in the chain. */
  sequence: number;
}

interface PackProgress {
  entries: number;
  rawBytes: number;
}

interface PackOptions {
  roots: readonly PackRoot[];
  sink: ArchiveSink;
  /** The archive key, or the derived keys of this archive and all its parents. */
  key: ArchiveKey;
  identity: ArchiveIdentity;
  createdAt: Date;
  /**
   * The parent chain, the full archive first. With a parent, a tree root gets only its differences from the parent, but
   * a stream root is complete. Without a parent, the archive is a full archive.
   */
  parent?: readonly ArchiveLink[];
  limits?: Partial<ArchiveLimits>;
  signal?: AbortSignal;
  onProgress?: (progress: PackProgress) => void;
  /** Called for each path that the archive lacks or holds incompletely, or that will not work after a restore. */
  onSkip?: (skipped: SkippedPath) => void;
}

interface PackResult {
  /** The hex MAC of the manifest. The caller records this MAC, because a reader must pass it as `manifestMac`. */
  manifestMac: string;
  /** The hex SHA-256 of the manifest object. */
  manifestSha256: string;
  /** Bytes of all objects, the manifest included. */
  sizeBytes: number;
  entries: number;
  /** Bytes of the packed files' content. */
  rawBytes: number;
  skipped: number;
}

interface Packing {
  options: PackOptions;
  limits: ArchiveLimits;
  parents: readonly OpenArchive[];
  writer: BlockWriter;
  totals: { entries: number; rawBytes: number; skipped: number };
  /**
   * The counts that a reader's limits cover in addition to `totals`: the unchanged paths, which only the parents hold,
   * and the tombstones of the finished roots.
   */
  besides: RootTally;
}

/**
 * Packs roots into one archive. The manifest is written last, so an incomplete archive has none. Memory hardly grows
 * with the archive.
 * @throws ArchiveError `source_unreadable`, `limit_exceeded` or a reason of the parent chain, or an error of the sink
 * or a stream, or the signal's reason
 */
export async function pack(options: PackOptions): Promise<PackResult> {
  const limits = completeLimits(options.limits);
  const parents = options.parent === undefined ? [] : await openChain(options.parent, options.key, limits);
  checkIdentity(options.identity, parents.at(-1));
  const { archiveId } = options.identity;
  const keys = archiveKeysOf(
    options.key,
    saltOf(options.key, archiveId, () => randomBytes(saltBytes)),
    archiveId,
  );
  const writer = new BlockWriter(options.sink, keys);
  const totals = { entries: 0, rawBytes: 0, skipped: 0 };
  const packing: Packing = { options, limits, parents, writer, totals, besides: new RootTally() };
  try {
    const roots: ManifestRoot[] = [];
    for (const root of options.roots) roots.push(await packRoot(packing, root));
    await writer.finish();
    options.signal?.throwIfAborted();
    return await writeManifest(packing, keys, roots);
  } finally {
    await writer.settle();
  }
}

/** Checks that readers will accept the archive in its parent's chain. */
function checkIdentity(identity: ArchiveIdentity, parent: OpenArchive | undefined): void {
  if (parent === undefined) return;
  const { manifest } = parent;
  if (manifest.site_id !== identity.siteId || manifest.organisation_id !== identity.orgId)
    refuse('foreign', 'the parent is of another site');
  if (manifest.sequence >= identity.sequence) refuse('chain_gap', 'the sequence number does not follow the parent');
}

async function packRoot(packing: Packing, root: PackRoot): Promise<ManifestRoot> {
  const { options, writer, totals, besides } = packing;
  const tally = new RootTally();
  const firstBlock = await writer.startRoot(root.name);
  const rest = createPace(options.signal);
  const pace = (): Promise<void> | undefined => {
    assertAccepted(packing, tally);
    const turn = rest();
    if (turn !== undefined)
      options.onProgress?.({ entries: totals.entries + tally.entries, rawBytes: totals.rawBytes + tally.rawBytes });
    return turn;
  };
  if (root.kind === 'stream') {
    await packStream({ entries: root.entries, writer, tally, pace, createdAt: options.createdAt });
  } else {
    const parent = packing.parents.length > 0 ? new ParentTree(packing.parents, root.name, options.signal) : null;
    const onSkip = (skipped: SkippedPath): void => {
      totals.skipped += 1;
      options.onSkip?.(skipped);
    };
    const newest = packing.parents.at(-1)?.manifest.created_at;
    const parentCreatedAt = newest === undefined ? options.createdAt : new Date(newest);
    const { directory, releases } = root;
    await packTree({ directory, releases, writer, tally, unchanged: besides, parent, parentCreatedAt, pace, onSkip });
  }
  await writer.closeBlock();
  assertAccepted(packing, tally);
  totals.entries += tally.entries;
  totals.rawBytes += tally.rawBytes;
  besides.tombstones += tally.tombstones;
  return tally.row(root.name, root.kind, writer.blockCount - firstBlock);
}

/**
 * Refuses an archive that a reader with these limits would not accept, alone or at the end of its chain. `tally` counts
 * the root that is being packed.
 */
function assertAccepted({ limits, totals, besides }: Packing, tally: RootTally): void {
  const packed = totals.entries + tally.entries;
  if (packed + besides.entries > limits.entriesMax) refuse('limit_exceeded', `more than ${limits.entriesMax} paths`);
  if (packed + besides.tombstones + tally.tombstones > limits.entriesMax)
    refuse('limit_exceeded', `more than ${limits.entriesMax} changed and deleted paths in one increment`);
  if (totals.rawBytes + tally.rawBytes + besides.rawBytes > limits.rawBytesMax)
    refuse('limit_exceeded', `more than ${limits.rawBytesMax} bytes`);
}

async function writeManifest(packing: Packing, keys: ArchiveKeys, roots: ManifestRoot[]): Promise<PackResult> {
  const { options, writer, parents, totals } = packing;
  const { identity } = options;
  const parent = parents.at(-1);
  const manifest: Manifest = {
    format_version: writer.formatVersion,
    codec: 'zstd',
    cipher: 'aes-256-ctr+hmac-sha256',
    archive_id: identity.archiveId,
    site_id: identity.siteId,
    organisation_id: identity.orgId,
    sequence: identity.sequence,
    parent_mac: parent?.manifestMac ?? null,
    base_id: parent?.manifest.base_id ?? identity.archiveId,
    created_at: options.createdAt.toISOString(),
    entries: totals.entries,
    raw_bytes: totals.rawBytes,
    segments: writer.segmentCount,
    size_bytes: writer.sizeBytes,
    roots,
    blocks: writer.blocks.map(({ size, mac }) => [size, mac.toString('hex')]),
  };
  const sealed = sealManifest(options.key, keys.salt, manifestSchema.parse(manifest));
  await options.sink.write(manifestName, sealed.bytes);
  return {
    manifestMac: sealed.mac,
    manifestSha256: sealed.sha256,
    sizeBytes: writer.sizeBytes + sealed.bytes.length,
    ...totals,
  };
}
