import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { base62Alphabet } from '@drydock/contracts/platform/base62';
import { type CurrentFirst, deriveKey, deriveKeys, nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process/secrets';

const prefixLength = 12;
const secretLength = 43;
/** The greatest multiple of 62 below 256: a byte from there on would make the first letters likelier, and is passed over. */
const fairBytes = 248;

/**
 * The inputs of a derived secret: the same three give the same secret. No two secrets in the database have the same
 * three.
 */
export interface SecretOrigin {
  callerKeyId: string;
  rawIdempotencyKey: string;
  recordId: string;
}

export interface HashedSecret {
  secretHash: Uint8Array<ArrayBuffer>;
  pepperVersion: number;
}

export interface KeySecrets {
  newPrefix(): string;
  /** Random; or derived, so that a replay can show it again although only its hash is stored. */
  newSecret(origin: SecretOrigin | null): string;
  /** A derived secret once more, by the service's secret of that name. Throws when it is no longer accepted. */
  deriveAgain(origin: SecretOrigin, madeWith: string | undefined): string;
  hash(secret: string): HashedSecret;
  /** Takes the same time for a wrong secret, for no key at all (null) and for a pepper that is not known. */
  matches(secret: string, stored: HashedSecret | null): boolean;
  /** The hash of a secret that matches, when it was made with another pepper than the current one; null for the current one. */
  renew(secret: string, stored: HashedSecret): HashedSecret | null;
  /** Names the service's secret that derived secrets come from now. */
  madeWith: string;
}

/** `length` base62 characters out of `bytes`; throws when too few of them are fair. */
function letters(bytes: Uint8Array, length: number): string {
  let text = '';
  for (const byte of bytes) {
    if (text.length === length) break;
    if (byte < fairBytes) text += base62Alphabet.charAt(byte % 62);
  }
  if (text.length < length) throw new Error('too few fair bytes for a secret');
  return text;
}

/** Peppers by their version, hex. Version 1 is derived from the service's secret, or each of them while it is rotated, unless it is among these. */
export type Peppers = Readonly<Record<string, string>>;

/** @param serviceSecrets as SERVICE_SECRET has them; never stored beside the hashes, so that a stolen database opens nothing */
export function createKeySecrets(serviceSecrets: string, givenPeppers: Peppers = {}): KeySecrets {
  const peppers = new Map<number, CurrentFirst<Buffer>>([[1, deriveKeys(serviceSecrets, 'pepper:1')]]);
  for (const [version, secretHex] of Object.entries(givenPeppers)) peppers.set(Number(version), [deriveKey(secretHex, 'pepper')]);
  const pepperVersion = Math.max(...peppers.keys());
  const currentSecret = secretsIn(serviceSecrets)[0];
  const madeWith = nameOfSecret(currentSecret);
  const nobody: HashedSecret = { secretHash: new Uint8Array(randomBytes(32)), pepperVersion };
  const hashWith = (pepper: Buffer, secret: string): Buffer => createHmac('sha256', pepper).update(secret).digest();
  const currentPepper = peppers.get(pepperVersion)?.[0] ?? randomBytes(32);
  /** As many for each version and for an unknown one: how long a comparison takes tells nothing. */
  const most = Math.max(...[...peppers.values()].map(({ length }) => length));
  const nobodysPeppers = Array.from({ length: most }, () => randomBytes(32));
  const peppersOf = (version: number): Buffer[] => [...(peppers.get(version) ?? []), ...nobodysPeppers].slice(0, most);
  const hash = (secret: string): HashedSecret => ({ secretHash: new Uint8Array(hashWith(currentPepper, secret)), pepperVersion });
  const derived = (serviceSecret: string, { callerKeyId, rawIdempotencyKey, recordId }: SecretOrigin): string => {
    const derivationKey = deriveKey(serviceSecret, 'minted-secret');
    const info = JSON.stringify([callerKeyId, rawIdempotencyKey, recordId]);
    return letters(new Uint8Array(hkdfSync('sha256', derivationKey, recordId, hashOf(info), 128)), secretLength);
  };
  return {
    newPrefix: () => letters(randomBytes(64), prefixLength),
    newSecret: (origin) => (origin === null ? letters(randomBytes(128), secretLength) : derived(currentSecret, origin)),
    deriveAgain: (origin, name) => derived(secretNamed(serviceSecrets, name), origin),
    madeWith,
    hash,
    matches: (secret, stored) => {
      const expected = stored ?? nobody;
      const equal = peppersOf(expected.pepperVersion).map((pepper) => timingSafeEqual(hashWith(pepper, secret), expected.secretHash));
      return equal.includes(true) && stored !== null;
    },
    renew: (secret, stored) => {
      const current = hash(secret);
      return stored.pepperVersion === pepperVersion && timingSafeEqual(current.secretHash, stored.secretHash) ? null : current;
    },
  };
}

/** HKDF's info holds at most 1024 bytes, and an Idempotency-Key alone may have 255. */
const hashOf = (info: string): Buffer => createHmac('sha256', 'minted-secret').update(info).digest();
