import { createHash, timingSafeEqual } from 'node:crypto';
import { refuse } from '../format/archive-error';
import {
  type ArchiveKey,
  type ArchiveKeys,
  archiveKeysOf,
  type DerivedKeys,
  manifestKeysOf,
  type RootKey,
} from '../format/archive-keys';
import { type ArchiveLimits, completeLimits } from '../format/archive-limits';
import { type ArchiveSource, blockName, manifestName } from '../format/archive-objects';
import { checkAscending, decodeBlock, type IndexBlock } from '../format/index-block';
import { type Manifest, type ManifestRoot, type OpenedManifest, openManifest, RootTally } from '../format/manifest';
import { releaseMemory } from '../format/release-memory';
import { openObject } from '../format/sealed-object';

/** The recorded facts with which an archive must agree. */
export interface ExpectedArchive {
  archiveId: string;
  siteId: string;
  orgId: string;
  /** The manifest's MAC in hex, as `pack` returned it. */
  manifestMac: string;
  /**
   * The MAC of the parent's manifest, or null for a full archive. Without this field, `openArchive` does not check the
   * parent.
   */
  parentMac?: string | null;
}

/** An archive with the facts that it must agree with. A chain is an array of such links, the full archive first. */
export interface ArchiveLink {
  source: ArchiveSource;
  expected: ExpectedArchive;
}

/** An archive with a verified manifest. */
export interface OpenArchive {
  source: ArchiveSource;
  manifest: Manifest;
  manifestMac: string;
  keys: ArchiveKeys;
  /** The caller's key that sealed the archive. */
  key: ArchiveKey;
}

/**
 * Verifies a manifest, and checks that it agrees with `link.expected`. @throws ArchiveError with any reason of a
 * manifest
 */
export async function openArchive(link: ArchiveLink, key: ArchiveKey, limits: ArchiveLimits): Promise<OpenArchive> {
  const opened = openManifest(key, await link.source.read(manifestName));
  checkExpected(opened, link.expected);
  checkDeclared(opened.manifest, limits);
  const { manifest, mac, salt } = opened;
  return {
    source: link.source,
    manifest,
    manifestMac: mac,
    keys: archiveKeysOf(opened.key, salt, manifest.archive_id),
    key: opened.key,
  };
}

/** The facts that a writer reports about an archive. */
interface ArchiveFacts {
  manifestMac: string;
  manifestSha256: string;
  sizeBytes: number;
  rawBytes: number;
}

/**
 * Reads the facts of an unrecorded archive from its manifest. The manifest's MAC proves that the archive belongs to the
 * expected site and id, but not that all its objects exist. @throws ArchiveError with any reason of a manifest
 */
export async function readFacts(
  source: ArchiveSource,
  key: ArchiveKey,
  expected: Omit<ExpectedArchive, 'manifestMac'>,
): Promise<ArchiveFacts> {
  const bytes = await source.read(manifestName);
  const opened = openManifest(key, bytes);
  checkExpected(opened, { ...expected, manifestMac: opened.mac });
  checkDeclared(opened.manifest, completeLimits());
  const { size_bytes: sizeBytes, raw_bytes: rawBytes } = opened.manifest;
  const manifestSha256 = createHash('sha256').update(bytes).digest('hex');
  return { manifestMac: opened.mac, manifestSha256, sizeBytes: sizeBytes + bytes.length, rawBytes };
}

/**
 * Derives the keys of one archive, for a process that may read no other archive. The manifest is verified first.
 * @throws ArchiveError with any reason of a manifest
 */
export async function deriveKeysOf(link: ArchiveLink, archiveKey: RootKey): Promise<DerivedKeys> {
  const { keys, key } = await openArchive(link, archiveKey, completeLimits());
  return { ...keys, ...manifestKeysOf(key, keys.salt) };
}

function checkExpected({ manifest, mac }: OpenedManifest, expected: ExpectedArchive): void {
  if (manifest.site_id !== expected.siteId || manifest.organisation_id !== expected.orgId)
    refuse('foreign', 'archive of another site');
  if (!equalMacs(mac, expected.manifestMac))
    refuse('replayed_older', 'a valid archive of this site, but not the recorded one');
  if (manifest.archive_id !== expected.archiveId) refuse('foreign', 'archive with another id');
  if (expected.parentMac !== undefined && manifest.parent_mac !== expected.parentMac)
    refuse('chain_gap', 'archive with another parent');
}

function equalMacs(left: string, right: string): boolean {
  const [leftBytes, rightBytes] = [Buffer.from(left, 'utf8'), Buffer.from(right, 'utf8')];
  return leftBytes.length === rightBytes.length && timingSafeEqual(leftBytes, rightBytes);
}

function checkDeclared(manifest: Manifest, limits: ArchiveLimits): void {
  const { roots } = manifest;
  const sum = (value: (root: ManifestRoot) => number): number => roots.reduce((total, root) => total + value(root), 0);
  if (new Set(roots.map((root) => root.name)).size !== roots.length) refuse('mismatch', 'manifest names a root twice');
  const agrees =
    sum((root) => root.blocks) === manifest.blocks.length &&
    sum((root) => root.entries) === manifest.entries &&
    sum((root) => root.raw_bytes) === manifest.raw_bytes;
  if (!agrees) refuse('mismatch', 'counts of the manifest contradict each other');
  if (manifest.entries + sum((root) => root.tombstones) > limits.entriesMax)
    refuse('limit_exceeded', `${manifest.entries} entries declared`);
  if (manifest.raw_bytes > limits.rawBytesMax) refuse('limit_exceeded', `${manifest.raw_bytes} bytes declared`);
  if ((manifest.parent_mac === null) !== (manifest.base_id === manifest.archive_id))
    refuse('mismatch', 'base and parent contradict each other');
}

/** Returns a root's row of the manifest. @throws ArchiveError `unknown_root` */
export function findRoot(archive: OpenArchive, name: string): ManifestRoot {
  return archive.manifest.roots.find((root) => root.name === name) ?? refuse('unknown_root', name);
}

export function firstBlockOf(archive: OpenArchive, name: string): number {
  const at = archive.manifest.roots.findIndex((root) => root.name === name);
  return archive.manifest.roots.slice(0, at).reduce((sum, root) => sum + root.blocks, 0);
}

async function readBlock(archive: OpenArchive, root: ManifestRoot, number: number): Promise<IndexBlock> {
  const [size, mac] = archive.manifest.blocks[number] ?? refuse('mismatch', `no block ${number}`);
  const bytes = await archive.source.read(blockName(number));
  const seal = { size, mac: Buffer.from(mac, 'hex') };
  const raw = await openObject(archive.keys, { kind: 'block', number }, bytes, seal);
  const block = decodeBlock(raw, root.kind);
  if (block.root !== root.name) refuse('mismatch', `block ${number} is of root ${block.root}`);
  return block;
}

/**
 * Verifies the manifests of a chain and the links between them, the full archive first. Nothing else is read. The
 * limits apply to each archive alone. The sum of the archives says nothing about the size of a restore, because a newer
 * archive replaces all streams and some paths of the older archives. `checkTree` applies the limits to the tree.
 * @throws ArchiveError with the reasons of openArchive, and `chain_gap`, `chain_cycle`, `foreign`
 */
export async function openChain(
  links: readonly ArchiveLink[],
  key: ArchiveKey,
  limits: ArchiveLimits,
): Promise<OpenArchive[]> {
  if (links.length === 0) refuse('chain_gap', 'a chain without archives');
  const archives: OpenArchive[] = [];
  for (const link of links) archives.push(await openArchive(link, key, limits));
  checkLinks(archives);
  return archives;
}

function checkLinks(archives: readonly OpenArchive[]): void {
  const ids = new Set<string>();
  archives.forEach((archive, at) => {
    const { manifest } = archive;
    if (ids.has(manifest.archive_id)) refuse('chain_cycle', `archive ${manifest.archive_id} occurs twice`);
    ids.add(manifest.archive_id);
    const parent = archives[at - 1];
    if (parent === undefined) {
      if (manifest.parent_mac !== null) refuse('chain_gap', 'the chain does not begin with a full archive');
      return;
    }
    checkLink(parent, archive);
  });
}

function checkLink(parent: OpenArchive, child: OpenArchive): void {
  const [older, newer] = [parent.manifest, child.manifest];
  if (newer.site_id !== older.site_id || newer.organisation_id !== older.organisation_id)
    refuse('foreign', 'a chain over two sites');
  if (newer.parent_mac !== parent.manifestMac) refuse('chain_gap', `archive ${newer.archive_id} has another parent`);
  if (newer.base_id !== older.base_id) refuse('chain_gap', `archive ${newer.archive_id} has another base`);
  if (newer.sequence <= older.sequence) refuse('chain_gap', `archive ${newer.archive_id} is not newer than its parent`);
  // A newer archive may have stream roots that an older archive lacks, because streams are complete in each archive.
  const has = (roots: ManifestRoot[], { name, kind }: ManifestRoot): boolean =>
    roots.some((other) => other.name === name && other.kind === kind);
  const isContinued = older.roots.every((root) => has(newer.roots, root));
  const isKnown = newer.roots.every((root) => root.kind === 'stream' || has(older.roots, root));
  if (!isContinued || !isKnown) refuse('mismatch', 'archives of a chain with different roots');
}

export interface NumberedBlock {
  number: number;
  block: IndexBlock;
}

/**
 * Yields the blocks of a root of one archive, in order and verified. A block is valid until the next one is requested.
 * The next block is read while the caller uses this block. The counts are compared with the manifest at the end.
 * @throws ArchiveError with any reason; `mismatch` for missing or surplus entries, and for segments out of order
 */
export async function* readBlocks(
  archive: OpenArchive,
  rootName: string,
  signal?: AbortSignal,
): AsyncGenerator<NumberedBlock> {
  const root = findRoot(archive, rootName);
  const first = firstBlockOf(archive, rootName);
  const tally = new RootTally();
  let nextSegment: number | null = null;
  let previousPath: string | null = null;
  const start = (number: number): Promise<IndexBlock> => {
    const reading = readBlock(archive, root, number);
    // The loop below awaits the block only in its next turn. Until then a rejection must not count as unhandled.
    reading.catch(() => undefined);
    return reading;
  };
  let ahead = root.blocks > 0 ? start(first) : null;
  for (let number = first; ahead !== null; number += 1) {
    signal?.throwIfAborted();
    const block: IndexBlock = await ahead;
    ahead = number + 1 < first + root.blocks ? start(number + 1) : null;
    if (nextSegment !== null && block.firstSegment !== nextSegment)
      refuse('mismatch', `block ${number} uses segments out of order`);
    nextSegment = block.firstSegment + block.segments.length;
    if (root.kind === 'tree') previousPath = checkContinues(previousPath, block);
    for (const entry of block.entries) tally.count(entry);
    yield { number, block };
    releaseMemory(block.raw);
  }
  checkCounts(tally, archive, rootName);
}

function checkContinues(previous: string | null, block: IndexBlock): string | null {
  const [first, last] = [block.entries[0], block.entries.at(-1)];
  if (first !== undefined && previous !== null) checkAscending(previous, first.path);
  return last?.path ?? previous;
}

function checkCounts(tally: RootTally, archive: OpenArchive, rootName: string): void {
  const root = findRoot(archive, rootName);
  const agrees =
    tally.entries === root.entries && tally.tombstones === root.tombstones && tally.rawBytes === root.raw_bytes;
  if (!agrees)
    refuse(
      'mismatch',
      `root ${rootName} holds ${tally.entries} entries of ${tally.rawBytes} bytes, not what it declares`,
    );
  if (tally.tombstones > 0 && archive.manifest.parent_mac === null) refuse('mismatch', 'a full archive with deletions');
}
