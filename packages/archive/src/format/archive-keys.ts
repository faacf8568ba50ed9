import { createHash, hkdfSync } from 'node:crypto';
import { refuse } from './archive-error';

export const keyBytes = 32;
export const saltBytes = 16;

/** Keys of one packing. The salt is drawn anew by every `pack`, so packing the same archive id again never meets the same keystream. */
export interface ArchiveKeys {
  salt: Buffer;
  /** First 16 bytes of SHA-256 of the archive id: which archive an object says it belongs to. */
  archiveTag: Buffer;
  encryption: Buffer;
  authentication: Buffer;
}

/** Everything that one archive needs, and nothing that opens another: for whoever may handle this one only. */
export interface DerivedKeys extends ArchiveKeys {
  manifest: Buffer;
  /** 16 public bytes that tell a wrong key from tampering. */
  check: Buffer;
}

/** The archive key, 32 bytes; or several, while it is rotated. The first seals new archives. An older one is opened by the key that has sealed it. */
export type RootKey = Buffer | readonly [Buffer, ...Buffer[]];

/** A key that opens archives: the archive key, or keys that were derived from it for each archive at hand. */
export type ArchiveKey = RootKey | readonly DerivedKeys[];

/** The keys of a new archive. */
export function deriveKeys(archiveKey: RootKey, salt: Buffer, archiveId: string): DerivedKeys {
  return { ...archiveKeysOf(archiveKey, salt, archiveId), ...manifestKeysOf(archiveKey, salt) };
}

/** The key by which the archive with this salt and this check was sealed; the first of several when none fits. */
export function sealingKey(key: ArchiveKey, salt: Buffer, check: Buffer): ArchiveKey {
  if (isDerived(key) || Buffer.isBuffer(key)) return key;
  return key.find((each) => manifestKeysOf(each, salt).check.equals(check)) ?? key[0];
}

const isDerived = (key: ArchiveKey): key is readonly DerivedKeys[] => !Buffer.isBuffer(key) && !Buffer.isBuffer(key[0]);

const currentOf = (key: RootKey): Buffer => (Buffer.isBuffer(key) ? key : key[0]);

/** Keys of an archive's segments and index blocks. @throws ArchiveError `wrong_key` when they are not among the derived ones */
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

/** Keys of the manifest's MAC. They do not depend on the archive id, which is read only after the MAC has been checked. */
export function manifestKeysOf(key: ArchiveKey, salt: Buffer): Pick<DerivedKeys, 'manifest' | 'check'> {
  if (isDerived(key)) return derivedFor(key, salt);
  const current = currentOf(key);
  return {
    manifest: derive(current, salt, 'drydock archive 1 manifest', keyBytes),
    check: derive(current, salt, 'drydock archive 1 key check', 16),
  };
}

/** With which salt an archive is packed: a fresh one, or that of the keys which were derived for it. */
export function saltOf(key: ArchiveKey, archiveId: string, fresh: () => Buffer): Buffer {
  if (!isDerived(key)) return fresh();
  const tag = createHash('sha256').update(archiveId).digest().subarray(0, 16);
  return key.find(({ archiveTag }) => archiveTag.equals(tag))?.salt ?? refuse('wrong_key', 'no keys to pack this archive with');
}

function derivedFor(keys: readonly DerivedKeys[], salt: Buffer): DerivedKeys {
  return keys.find((derived) => derived.salt.equals(salt)) ?? refuse('wrong_key', 'no keys for an archive of this salt');
}

/** As text, for the specification of a job. */
export type EncodedKeys = Record<keyof DerivedKeys, string>;

export function encodeKeys({ salt, archiveTag, encryption, authentication, manifest, check }: DerivedKeys): EncodedKeys {
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

export function decodeKeys({ salt, archiveTag, encryption, authentication, manifest, check }: EncodedKeys): DerivedKeys {
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
