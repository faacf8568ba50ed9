import { z } from 'zod';
import { formatBounds } from './archive-limits';
import type { Entry } from './entry';

const text = z.string().min(1).max(200);
const mac = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const manifestRoot = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/),
  /**
   * A `tree` is a directory, which a chain's archives describe together. A `stream` is a list of named contents, which
   * is complete in each archive.
   */
  kind: z.enum(['tree', 'stream']),
  blocks: count,
  entries: count,
  tombstones: count,
  raw_bytes: count,
});

/** The content of a manifest. */
export const manifestSchema = z.strictObject({
  /**
   * Version 2 adds links to anywhere, set-group-id of directories, sparse files and more than 256 levels. Version 3
   * adds sticky directories, and paths and targets over 4,000 bytes. Version 4 adds FIFOs, set-id and sticky bits of
   * files, and links and FIFOs with several names. An archive gets the lowest version with all its features, so that
   * older readers can read it. Version 1 is only read.
   */
  format_version: z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4)]),
  codec: z.literal('zstd'),
  cipher: z.literal('aes-256-ctr+hmac-sha256'),
  archive_id: text,
  site_id: text,
  organisation_id: text,
  sequence: count,
  /** The MAC of the parent's manifest, or null for a full archive. */
  parent_mac: mac.nullable(),
  /** The id of the chain's full archive. A full archive has its own id here. */
  base_id: text,
  created_at: z.iso.datetime(),
  entries: count,
  raw_bytes: count,
  segments: count,
  /** Bytes of all objects without the manifest. */
  size_bytes: count,
  /** The roots, in the order of their blocks. */
  roots: z.array(manifestRoot).max(16),
  /** `[size, mac]` of each index block. Each block has the same for its segments. */
  blocks: z.array(z.tuple([count.max(2 * formatBounds.blockIndexRawBytes), mac])),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type ManifestRoot = z.infer<typeof manifestRoot>;

/** Counts of one root. A writer turns them into the root's row of the manifest, and a reader compares them with it. */
export class RootTally {
  entries = 0;
  tombstones = 0;
  rawBytes = 0;

  count(entry: Entry): void {
    if (entry.type === 'tombstone') this.tombstones += 1;
    else this.entries += 1;
    this.rawBytes += entry.size;
  }

  row(name: string, kind: 'tree' | 'stream', blocks: number): ManifestRoot {
    return { name, kind, blocks, entries: this.entries, tombstones: this.tombstones, raw_bytes: this.rawBytes };
  }
}
