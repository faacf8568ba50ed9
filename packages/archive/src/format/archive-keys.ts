import { createHash, hkdfSync } from 'node:crypto';
import { refuse } from './archive-error';

export const keyBytes = 32;
export const saltBytes = 16;

/**
 * The keys of one packing of an archive. If the same archive id is packed again, the new packing has another salt, so
 * that no keystream repeats.
 */
export interface ArchiveKeys {
  salt: Buffer;
  /**
   * The first 16 bytes of the SHA-256 of the archive id. Each segment and index block contains these bytes, so that a
   * reader recognises an object of another archive.
   */
  archiveTag: Buffer;
  encryption: Buffer;
  authentication: Buffer;
}

/** All keys of one archive. A process that may handle only this archive gets these keys and not the archive key. */
export interface DerivedKeys extends ArchiveKeys {
  manifest: Buffer;
  /**
   * 16 public bytes derived from the archive key. They tell a reader whether the key is wrong or the archive was
   * tampered with.
   */
  check: Buffer;
}

/**
 * The archive key of 32 bytes, or several archive keys during a rotation. The first key seals new archives. An older
 * archive is opened with the key that sealed it.
 */
export type RootKey = Buffer | readonly [Buffer, ...Buffer[]];

/** Keys that open archives: the archive key, or keys derived from it for certain archives. */
export type ArchiveKey = RootKey | readonly DerivedKeys[];

export function deriveKeys(archiveKey: RootKey, salt: Buffer, archiveId: string): DerivedKeys {
  return { ...archiveKeysOf(archiveKey, salt, archiveId), ...manifestKeysOf(archiveKey, salt) };
}

/**
 * Returns the archive key that sealed the archive with this salt and key check, or the first key if none fits. Derived
 * keys and a single archive key are returned unchecked.
 */
export function sealingKey(key: ArchiveKey, salt: Buffer, check: Buffer): ArchiveKey {
  if (isDerived(key) || Buffer.isBuffer(key)) return key;
  return key.find((each) => manifestKeysOf(each, salt).check.equals(check)) ?? key[0];
}

const isDerived = (key: ArchiveKey): key is readonly DerivedKeys[] => !Buffer.isBuffer(key) && !Buffer.isBuffer(key[0]);

const currentOf = (key: RootKey): Buffer => (Buffer.isBuffer(key) ? key : key[0]);

/**
 * Returns the keys of an archive's segments and index blocks. @throws ArchiveError `wrong_key` when `key` has only keys
 * of other archives
 */
export function archiveKeysOf(key: ArchiveKey, salt: Buffer, archiveId: string): ArchiveKeys {
  const archiveTag = createHash('sha256').update(archiveId).digest().subarray(0, 16);
  if (isDerived(key)) {
    const derived = derivedFor(key, salt);
    return derived.archiveTag.equals(archiveTag) ? derived : refuse('wrong_key', 'keys of another archive');
  }
  const current = currentOf(key);
  return {
    salt,
    archiveTag,
    encryption: derive(current, salt, `drydock archive 1 encryption ${archiveId}`, keyBytes),
    authentication: derive(current, salt, `drydock archive 1 authentication ${archiveId}`, keyBytes),
  };
}

/**
 * Returns the keys of the manifest's MAC. They do not depend on the archive id, because the id is read only after the
 * MAC was checked.
 */
export function manifestKeysOf(key: ArchiveKey, salt: Buffer): Pick<DerivedKeys, 'manifest' | 'check'> {
  if (isDerived(key)) return derivedFor(key, salt);
  const current = currentOf(key);
  return {
    manifest: derive(current, salt, 'drydock archive 1 manifest', keyBytes),
    check: derive(current, salt, 'drydock archive 1 key check', 16),
  };
}

/**
 * Returns the salt for a new archive: the salt of the archive's derived keys, or a fresh salt if `key` is an archive
 * key. @throws ArchiveError `wrong_key`
 */
export function saltOf(key: ArchiveKey, archiveId: string, fresh: () => Buffer): Buffer {
  if (!isDerived(key)) return fresh();
  const tag = createHash('sha256').update(archiveId).digest().subarray(0, 16);
  return (
    key.find(({ archiveTag }) => archiveTag.equals(tag))?.salt ??
    refuse('wrong_key', 'no keys to pack this archive with')
  );
}

function derivedFor(keys: readonly DerivedKeys[], salt: Buffer): DerivedKeys {
  return (
    keys.find((derived) => derived.salt.equals(salt)) ?? refuse('wrong_key', 'no keys for an archive of this salt')
  );
}

/** Keys as text, so that JSON can hold them. */
export type EncodedKeys = Record<keyof DerivedKeys, string>;

export function encodeKeys({
  salt,
  archiveTag,
  encryption,
  authentication,
  manifest,
  check,
}: DerivedKeys): EncodedKeys {
  const text = (bytes: Buffer): string => bytes.toString('base64');
  return {
    salt: text(salt),
    archiveTag: text(archiveTag),
    encryption: text(encryption),
    authentication: text(authentication),
    manifest: text(manifest),
    check: text(check),
  };
}

export function decodeKeys({
  salt,
  archiveTag,
  encryption,
  authentication,
  manifest,
  check,
}: EncodedKeys): DerivedKeys {
  const bytes = (text: string): Buffer => Buffer.from(text, 'base64');
  return {
    salt: bytes(salt),
    archiveTag: bytes(archiveTag),
    encryption: bytes(encryption),
    authentication: bytes(authentication),
    manifest: bytes(manifest),
    check: bytes(check),
  };
}

function derive(archiveKey: Buffer, salt: Buffer, info: string, length: number): Buffer {
  if (archiveKey.length !== keyBytes) throw new TypeError('an archive key has 32 bytes');
  return Buffer.from(hkdfSync('sha256', archiveKey, salt, info, length));
}
