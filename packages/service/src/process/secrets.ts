import { hkdfSync } from 'node:crypto';

/** A secret in hex, or several, separated by commas. There are several only while the secret is rotated. */
export const secretsForm = /^(?:[0-9a-f]{2}){32,}(?:,(?:[0-9a-f]{2}){32,})*$/i;

/**
 * One or more secrets or keys. The first one signs, seals and derives new values. Values of all of them are accepted.
 */
export type CurrentFirst<T> = readonly [T, ...T[]];

/** The secrets of a variable. docs/operating.md describes their rotation. */
export function secretsIn(text: string): CurrentFirst<string> {
  const [current = '', ...others] = text.split(',');
  return [current, ...others];
}

/** The bytes of each secret. Throws if one is shorter than 32 bytes or not hex. */
export function secretBuffers(text: string): CurrentFirst<Buffer> {
  const [current, ...others] = secretsIn(text);
  return [secretBytes(current), ...others.map(secretBytes)];
}

/**
 * Derives a key of 32 bytes from a process's secret, by HKDF-SHA-256 with `label` as its info. Each use has its own
 * label (`cursor`, `pepper:1`), so that a leaked key of one use is worthless for another. Throws if `secretHex` is not
 * at least 32 bytes of hex.
 */
export function deriveKey(secretHex: string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretBytes(secretHex), '', label, 32));
}

export function deriveKeys(text: string, label: string): CurrentFirst<Buffer> {
  const [current, ...others] = secretsIn(text);
  return [deriveKey(current, label), ...others.map((each) => deriveKey(each, label))];
}

/**
 * A name of 8 hex digits that identifies a secret without revealing it. It is stored with a derived value, so that the
 * value can be derived again.
 */
export const nameOfSecret = (secretHex: string): string => deriveKey(secretHex, 'name').toString('hex', 0, 4);

/** Thrown if a value was derived from a secret that is no longer accepted. */
export class SecretGone extends Error {
  override readonly name = 'SecretGone';
}

/**
 * The secret of that name, or the current secret if no name is given. Throws {@link SecretGone} if no accepted secret
 * has the name.
 */
export function secretNamed(text: string, name: string | undefined): string {
  const secrets = secretsIn(text);
  if (name === undefined) return secrets[0];
  const found = secrets.find((each) => nameOfSecret(each) === name);
  if (found === undefined) throw new SecretGone(`the secret ${name} is no longer accepted`);
  return found;
}

/**
 * The bytes of a secret from the environment. Throws if it is shorter than 32 bytes or not hex. The message never
 * contains the secret.
 */
export function secretBytes(secretHex: string): Buffer {
  if (!/^(?:[0-9a-f]{2}){32,}$/i.test(secretHex)) throw new Error('a secret must be at least 32 bytes, written as hex');
  return Buffer.from(secretHex, 'hex');
}
