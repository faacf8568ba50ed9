import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { base62Alphabet } from '@drydock/contracts/base62';
import { deriveKey } from '@drydock/service-kit/secrets';

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
  /** In constant time, also for a version that is not known. */
  matches(secret: string, stored: HashedSecret): boolean;
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

/** The pepper that new hashes use. An older one stays in the list for as long as a key was hashed with it. */
const pepperVersions = [1];
const currentPepperVersion = 1;

/** @param serviceSecret hex; never stored beside the hashes, so that a stolen database opens nothing */
export function createKeySecrets(serviceSecret: string): KeySecrets {
  const peppers = new Map(pepperVersions.map((version) => [version, deriveKey(serviceSecret, `pepper:${version}`)]));
  const derivationKey = deriveKey(serviceSecret, 'minted-secret');
  const unknownPepper = randomBytes(32);
  const hashWith = (version: number, secret: string): Buffer =>
    createHmac('sha256', peppers.get(version) ?? unknownPepper)
      .update(secret)
      .digest();
  const derived = ({ callerKeyId, rawIdempotencyKey, recordId }: SecretOrigin): string => {
    const info = JSON.stringify([callerKeyId, rawIdempotencyKey, recordId]);
    return letters(new Uint8Array(hkdfSync('sha256', derivationKey, recordId, hashOf(info), 128)), secretLength);
  };
  return {
    newPrefix: () => letters(randomBytes(64), prefixLength),
    newSecret: (origin) => (origin === null ? letters(randomBytes(128), secretLength) : derived(origin)),
    hash: (secret) => ({ secretHash: new Uint8Array(hashWith(currentPepperVersion, secret)), pepperVersion: currentPepperVersion }),
    matches: (secret, { secretHash, pepperVersion }) => {
      const hash = hashWith(pepperVersion, secret);
      return hash.length === secretHash.length && timingSafeEqual(hash, secretHash);
    },
  };
}

/** HKDF's info holds at most 1024 bytes, and an Idempotency-Key alone may have 255. */
const hashOf = (info: string): Buffer => createHmac('sha256', 'minted-secret').update(info).digest();
