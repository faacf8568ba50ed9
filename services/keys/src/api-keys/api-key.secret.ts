import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { base62Alphabet } from '@drydock/contracts/platform/base62';
import { deriveKey } from '@drydock/service/process/secrets';

const prefixLength = 12;
const secretLength = 43;
/** The greatest multiple of 62 below 256: a byte from there on would make the first letters likelier, and is passed over. */
const fairBytes = 248;

/** What a derived secret depends on: the same three give the same secret, and no two of them in the database do. */
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
  hash(secret: string): HashedSecret;
  /** Takes the same time for a wrong secret, for no key at all (null) and for a pepper that is not known. */
  matches(secret: string, stored: HashedSecret | null): boolean;
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

/** Peppers by their version, hex. Version 1 is derived from the service's secret unless it is among them. */
export type Peppers = Readonly<Record<string, string>>;

/** @param serviceSecret hex; never stored beside the hashes, so that a stolen database opens nothing */
export function createKeySecrets(serviceSecret: string, givenPeppers: Peppers = {}): KeySecrets {
  const peppers = new Map([[1, deriveKey(serviceSecret, 'pepper:1')]]);
  for (const [version, secretHex] of Object.entries(givenPeppers)) peppers.set(Number(version), deriveKey(secretHex, 'pepper'));
  const pepperVersion = Math.max(...peppers.keys());
  const derivationKey = deriveKey(serviceSecret, 'minted-secret');
  const nobody: HashedSecret = { secretHash: new Uint8Array(randomBytes(32)), pepperVersion };
  const nobodysPepper = randomBytes(32);
  const hashWith = (version: number, secret: string): Buffer =>
    createHmac('sha256', peppers.get(version) ?? nobodysPepper)
      .update(secret)
      .digest();
  const derived = ({ callerKeyId, rawIdempotencyKey, recordId }: SecretOrigin): string => {
    const info = JSON.stringify([callerKeyId, rawIdempotencyKey, recordId]);
    return letters(new Uint8Array(hkdfSync('sha256', derivationKey, recordId, hashOf(info), 128)), secretLength);
  };
  return {
    newPrefix: () => letters(randomBytes(64), prefixLength),
    newSecret: (origin) => (origin === null ? letters(randomBytes(128), secretLength) : derived(origin)),
    hash: (secret) => ({ secretHash: new Uint8Array(hashWith(pepperVersion, secret)), pepperVersion }),
    matches: (secret, stored) => {
      const expected = stored ?? nobody;
      return timingSafeEqual(hashWith(expected.pepperVersion, secret), expected.secretHash) && stored !== null;
    },
  };
}

/** HKDF's info holds at most 1024 bytes, and an Idempotency-Key alone may have 255. */
const hashOf = (info: string): Buffer => createHmac('sha256', 'minted-secret').update(info).digest();
