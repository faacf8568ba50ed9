import type { Entry } from './entry';
import type { ManifestRoot } from './manifest';

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
