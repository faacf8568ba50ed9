import { createHash, hkdfSync } from 'node:crypto';

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

/** Derives the keys of an archive's segments and index blocks. */
export function deriveArchiveKeys(archiveKey: Buffer, salt: Buffer, archiveId: string): ArchiveKeys {
  return {
    salt,
    archiveTag: createHash('sha256').update(archiveId).digest().subarray(0, 16),
    encryption: derive(archiveKey, salt, `drydock archive 1 encryption ${archiveId}`, keyBytes),
    authentication: derive(archiveKey, salt, `drydock archive 1 authentication ${archiveId}`, keyBytes),
  };
}

/** Key of the manifest's MAC. It does not depend on the archive id, which is read only after the MAC has been checked. */
export function deriveManifestKey(archiveKey: Buffer, salt: Buffer): Buffer {
  return derive(archiveKey, salt, 'drydock archive 1 manifest', keyBytes);
}

/** 16 public bytes that tell a wrong key from tampering. */
export function deriveKeyCheck(archiveKey: Buffer, salt: Buffer): Buffer {
  return derive(archiveKey, salt, 'drydock archive 1 key check', 16);
}

function derive(archiveKey: Buffer, salt: Buffer, info: string, length: number): Buffer {
  if (archiveKey.length !== keyBytes) throw new TypeError('an archive key has 32 bytes');
  return Buffer.from(hkdfSync('sha256', archiveKey, salt, info, length));
}
