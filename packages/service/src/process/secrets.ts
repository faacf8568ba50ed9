import { hkdfSync } from 'node:crypto';

/** One secret as hex, or several while it is rotated, with commas between. */
export const secretsForm = /^(?:[0-9a-f]{2}){32,}(?:,(?:[0-9a-f]{2}){32,})*$/i;

/** At least one value. The first one signs, seals and derives new values; all of them are accepted. */
export type CurrentFirst<T> = readonly [T, ...T[]];

/** The secrets of a variable; docs/operating.md describes their rotation. */
export function secretsIn(text: string): CurrentFirst<string> {
  const [current = '', ...others] = text.split(',');
  return [current, ...others];
}

/** The bytes of each. Throws when one is shorter than 32 bytes or not hex. */
export function secretBuffers(text: string): CurrentFirst<Buffer> {
  const [current, ...others] = secretsIn(text);
  return [secretBytes(current), ...others.map(secretBytes)];
}

/**
 * A sub-key of a process's secret: HKDF-SHA-256 with `label` as its info, 32 bytes. Labels keep uses apart (`cursor`,
 * `pepper:1`), so that a leaked key of one use opens no other. Throws if `secretHex` is not at least 32 bytes of hex.
 */
export function deriveKey(secretHex: string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretBytes(secretHex), '', label, 32));
}

/** The sub-keys of all secrets of a variable. */
export function deriveKeys(text: string, label: string): CurrentFirst<Buffer> {
  const [current, ...others] = secretsIn(text);
  return [deriveKey(current, label), ...others.map((each) => deriveKey(each, label))];
}

/**
 * Identifies a secret without revealing it: 8 hex digits. Stored beside a derived value, so that it can be derived
 * again.
 */
export const nameOfSecret = (secretHex: string): string => deriveKey(secretHex, 'name').toString('hex', 0, 4);

/** A secret that is no longer accepted: the master key that it came from was rotated. */
export class SecretGone extends Error {
  override readonly name = 'SecretGone';
}

/**
 * The secret of that name; without a name the first one, as before secrets could be rotated. Throws {@link SecretGone}
 * if it is no longer accepted.
 */
export function secretNamed(text: string, name: string | undefined): string {
  const secrets = secretsIn(text);
  if (name === undefined) return secrets[0];
  const found = secrets.find((each) => nameOfSecret(each) === name);
  if (found === undefined) throw new SecretGone(`the secret ${name} is no longer accepted`);
  return found;
}

/**
 * The bytes of a secret from the environment. Throws if it is shorter than 32 bytes or not hex, with a message that
 * never contains it.
 */
export function secretBytes(secretHex: string): Buffer {
  if (!/^(?:[0-9a-f]{2}){32,}$/i.test(secretHex)) throw new Error('a secret must be at least 32 bytes, written as hex');
  return Buffer.from(secretHex, 'hex');
}
