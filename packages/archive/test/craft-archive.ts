import { createHash, randomBytes } from 'node:crypto';
import { archiveKeysOf } from '../src/format/archive-keys';
import type { Entry } from '../src/format/entry';
import { type Manifest, RootTally, sealManifest } from '../src/format/manifest';
import { BlockWriter } from '../src/pack/block-writer';
import type { ArchiveLink } from '../src/read/open-archive';
import { MemoryArchive } from './memory-archive';

export const craftKey = Buffer.alloc(32, 9);

export interface CraftedEntry extends Partial<Entry> {
  path: string;
  content?: Buffer;
}

export interface Craft {
  entries: CraftedEntry[];
  kind?: 'tree' | 'stream';
  /** Changes the manifest just before a valid MAC is made for it. */
  manifest?: (manifest: Manifest) => Manifest;
  objects?: (archive: MemoryArchive) => void;
}

/** Creates an archive like an attacker who has the key: all MACs are valid, whatever the content is. */
export async function craftArchive(craft: Craft): Promise<ArchiveLink & { source: MemoryArchive }> {
  const source = new MemoryArchive();
  const keys = archiveKeysOf(craftKey, randomBytes(16), 'crafted');
  const writer = new BlockWriter(source, keys);
  const tally = new RootTally();
  await writer.startRoot('files');
  for (const crafted of craft.entries) {
    const entry = completeEntry(crafted);
    if (crafted.content !== undefined) await writer.append(crafted.content);
    tally.count(entry);
    await writer.add(entry);
  }
  await writer.finish();
  const manifest: Manifest = {
    format_version: 1,
    codec: 'zstd',
    cipher: 'aes-256-ctr+hmac-sha256',
    archive_id: 'crafted',
    site_id: 'site',
    organisation_id: 'org',
    sequence: 1,
    parent_mac: null,
    base_id: 'crafted',
    created_at: '2026-01-01T00:00:00.000Z',
    entries: tally.entries,
    raw_bytes: tally.rawBytes,
    segments: writer.segmentCount,
    size_bytes: writer.sizeBytes,
    roots: [tally.row('files', craft.kind ?? 'tree', writer.blockCount)],
    blocks: writer.blocks.map(({ size, mac }) => [size, mac.toString('hex')]),
  };
  const sealed = sealManifest(craftKey, keys.salt, craft.manifest?.(manifest) ?? manifest);
  await source.write('manifest', sealed.bytes);
  craft.objects?.(source);
  return { source, expected: { archiveId: 'crafted', siteId: 'site', orgId: 'org', manifestMac: sealed.mac } };
}

function completeEntry({ content, ...entry }: CraftedEntry): Entry {
  return {
    type: 'file',
    mode: entry.type === 'directory' ? 0o755 : 0o644,
    mtimeSeconds: 1_700_000_000,
    mtimeNanoseconds: 0,
    size: content?.length ?? 0,
    linked: false,
    sparse: false,
    attributes: Buffer.alloc(0),
    sha256: createHash('sha256')
      .update(content ?? '')
      .digest(),
    link: '',
    ...entry,
  };
}
