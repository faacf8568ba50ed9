import { hkdfSync } from 'node:crypto';

/**
 * A sub-key of a process' secret: HKDF-SHA-256 with `label` as its info, 32 bytes.
 * Labels keep uses apart (`cursor`, `pepper:1`), so that a key that leaks from one use opens no other.
 * Throws when `secretHex` is not at least 32 bytes of hex.
 */
export function deriveKey(secretHex: string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretBytes(secretHex), '', label, 32));
}

/** The bytes of a secret as the environment carries it. Throws when it is shorter than 32 bytes or not hex; the message never holds it. */
export function secretBytes(secretHex: string): Buffer {
  if (!/^(?:[0-9a-f]{2}){32,}$/i.test(secretHex)) throw new Error('a secret must be at least 32 bytes, written as hex');
  return Buffer.from(secretHex, 'hex');
}
