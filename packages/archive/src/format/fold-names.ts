import { createHash } from 'node:crypto';
import { refuse } from './archive-error';
import { type ByteString, textOfBytes } from './path-bytes';

/**
 * The form in which a folding file system may treat two names as equal: full case folding (ß is ss) and normalisation.
 */
export function foldName(name: ByteString): string {
  return textOfBytes(name).normalize('NFKD').toUpperCase().toLowerCase().normalize('NFKC');
}

/**
 * The names of one directory, as 64-bit hashes in open addressing. This takes about 16 bytes a name, because a
 * directory may have a million of them. Among a million different names, two have the same hash with a chance of about
 * 1 in 30 million. The archive would then be refused, but never mixed up.
 */
export class FoldedNames {
  private slots = new BigUint64Array(16);
  private count = 0;

  /** @throws ArchiveError `hostile_entry` when a name of this directory folds to the same */
  add(name: ByteString): void {
    const hash = hashOf(foldName(name));
    if (!this.insert(hash))
      refuse('hostile_entry', `two names that the target file system does not tell apart: ${name}`);
    this.count += 1;
    if (this.count * 2 > this.slots.length) this.grow();
  }

  private insert(hash: bigint): boolean {
    const mask = this.slots.length - 1;
    for (let at = Number(hash & BigInt(mask)); ; at = (at + 1) & mask) {
      const found = this.slots[at];
      if (found === hash) return false;
      if (found === 0n) {
        this.slots[at] = hash;
        return true;
      }
    }
  }

  private grow(): void {
    const old = this.slots;
    this.slots = new BigUint64Array(old.length * 2);
    for (const hash of old) if (hash !== 0n) this.insert(hash);
  }
}

function hashOf(folded: string): bigint {
  const hash = createHash('sha256').update(folded).digest().readBigUInt64BE(0);
  return hash === 0n ? 1n : hash; // 0 marks an empty slot
}
