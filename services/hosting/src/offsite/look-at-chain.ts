import { createHash } from 'node:crypto';
import { manifestName } from '@drydock/archive/format/archive-objects';
import { forEachAtOnce } from '../providers/for-each-at-once';
import { asMissingObject } from '../providers/offsite-errors';
import type { OffsiteReader } from '../providers/offsite-storage';
import type { StoredCopy } from './offsite.rules';
import { readsAtOnce } from './offsite-limits';

export type StoredChain = ReadonlyArray<Pick<StoredCopy, 'id' | 'archive'>>;

/** The ids of the chain's copies, by the state of their manifests. */
export interface ChainSeen {
  present: string[];
  missing: string[];
  /** The manifest is there, but differs from the one that was written. */
  altered: string[];
}

/**
 * Reads the manifests of a chain and compares them, for which no key is needed. Rejects if the storage refuses or
 * cannot be asked.
 */
export async function lookAtChain(reader: OffsiteReader, chain: StoredChain): Promise<ChainSeen> {
  const seen: ChainSeen = { present: [], missing: [], altered: [] };
  await forEachAtOnce(readsAtOnce, chain, async ({ id, archive }) => {
    const manifest = await reader
      .source(archive.objectKey)
      .read(manifestName)
      .catch((error: unknown) => {
        if (asMissingObject(error)) return null;
        throw error;
      });
    if (manifest === null) {
      seen.missing.push(id);
      return;
    }
    seen.present.push(id);
    if (createHash('sha256').update(manifest).digest('hex') !== archive.manifestSha256) seen.altered.push(id);
  });
  return seen;
}
