import { createHash } from 'node:crypto';
import { refuse } from './archive-error';
import { type ByteString, textOfBytes } from './path-bytes';

/** The form under which a folding file system may treat two names as one: full case folding (ß is ss) and normalisation. */
export function foldName(name: ByteString): string {
  return textOfBytes(name).normalize('NFKD').toUpperCase().toLowerCase().normalize('NFKC');
}

/**
 * Names of one directory as 64-bit hashes in open addressing: about 16 bytes a name, since a directory may have a million of them. Two
 * different names of a million meet with a chance of about 1 in 30 million; the archive would then be refused, never mixed up.
 */
export class FoldedNames {
  private slots = new BigUint64Array(16);
  private count = 0;

  /** @throws ArchiveError `hostile_entry` when a name of this directory folds to the same */
  add(name: ByteString): void {
    const hash = hashOf(foldName(name));
    if (!this.insert(hash)) refuse('hostile_entry', `two names that the target file system does not tell apart: ${name}`);
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
