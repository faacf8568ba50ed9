import { z } from 'zod';
import { formatBounds } from './archive-limits';
import type { Entry } from './entry';

const text = z.string().min(1).max(200);
const mac = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const manifestRoot = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/),
  /**
   * `tree` is a directory, merged over the chain. `stream` is named contents in their own order, always complete in
   * each archive.
   */
  kind: z.enum(['tree', 'stream']),
  blocks: count,
  entries: count,
  tombstones: count,
  raw_bytes: count,
});

/** The facts that an archive declares about itself. */
export const manifestSchema = z.strictObject({
  /**
   * The features of each version. 2: links that lead anywhere, set-group-id of directories, sparse files, more than 256
   * directories deep. 3: sticky directories, paths and targets of more than 4,000 bytes. 4: FIFOs, set-id and sticky
   * bits of files, links and FIFOs with several names. An archive gets the lowest version that has all its features, so
   * that older readers can read it. No writer writes 1 any more.
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
  /** The id of the full archive at the start of the chain. For a full archive, its own id. */
  base_id: text,
  created_at: z.iso.datetime(),
  entries: count,
  raw_bytes: count,
  segments: count,
  /** Bytes of all objects except the manifest. */
  size_bytes: count,
  /** The roots, in the order of their blocks. */
  roots: z.array(manifestRoot).max(16),
  /** `[size, mac]` of each index block, which in turn holds size and MAC of each of its segments. */
  blocks: z.array(z.tuple([count.max(2 * formatBounds.blockIndexRawBytes), mac])),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type ManifestRoot = z.infer<typeof manifestRoot>;

/** Counts of one root while it is packed or read. In the end they are the root's row of the manifest. */
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
