import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { base62Alphabet } from '@drydock/contracts/platform/api-token';
import {
  type CurrentFirst,
  deriveKey,
  deriveKeys,
  nameOfSecret,
  secretNamed,
  secretsIn,
} from '@drydock/service/process';

const prefixLength = 12;
const secretLength = 43;
/**
 * The largest multiple of 62 below 256. Bytes of 248 and above are skipped, because they would make the first letters
 * of the alphabet likelier.
 */
const fairBytes = 248;

/**
 * The inputs of a derived secret, beside the service's secret. The same three inputs always give the same secret, and
 * no two secrets in the database share all three inputs.
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
  /**
   * Returns a random secret, or a derived secret if there is an origin. A replay derives the secret again, because only
   * its hash is stored.
   */
  newSecret(origin: SecretOrigin | null): string;
  /**
   * Derives a secret again. `madeWith` names the service's secret from which it was derived. Throws if that secret of
   * the service is no longer accepted.
   */
  deriveAgain(origin: SecretOrigin, madeWith: string | undefined): string;
  hash(secret: string): HashedSecret;
  /**
   * Whether the secret matches the stored hash. A missing key (null) and an unknown pepper take as long as a wrong
   * secret.
   */
  matches(secret: string, stored: HashedSecret | null): boolean;
  /**
   * A new hash for a matching secret whose hash was made with an older pepper. Null if it was made with the current
   * pepper.
   */
  renew(secret: string, stored: HashedSecret): HashedSecret | null;
  /** The name of the service's secret from which new secrets are derived. */
  madeWith: string;
}

/** Makes `length` base62 characters from `bytes`; throws if too few of them are usable. */
function letters(bytes: Uint8Array, length: number): string {
  let text = '';
  for (const byte of bytes) {
    if (text.length === length) break;
    if (byte < fairBytes) text += base62Alphabet.charAt(byte % 62);
  }
  if (text.length < length) throw new Error('too few fair bytes for a secret');
  return text;
}

/**
 * Peppers by version, in hex. If version 1 is not given, it is derived from the service's secret. While the service's
 * secret is rotated, a derived version 1 has one pepper for each accepted secret.
 */
export type Peppers = Readonly<Record<string, string>>;

/**
 * @param serviceSecrets in the form of SERVICE_SECRET. They are never stored with the hashes, so that a stolen database
 * is of no use without them.
 */
export function createKeySecrets(serviceSecrets: string, givenPeppers: Peppers = {}): KeySecrets {
  const peppers = new Map<number, CurrentFirst<Buffer>>([[1, deriveKeys(serviceSecrets, 'pepper:1')]]);
  for (const [version, secretHex] of Object.entries(givenPeppers))
    peppers.set(Number(version), [deriveKey(secretHex, 'pepper')]);
  const pepperVersion = Math.max(...peppers.keys());
  const currentSecret = secretsIn(serviceSecrets)[0];
  const madeWith = nameOfSecret(currentSecret);
  const nobody: HashedSecret = { secretHash: new Uint8Array(randomBytes(32)), pepperVersion };
  const hashWith = (pepper: Buffer, secret: string): Buffer => createHmac('sha256', pepper).update(secret).digest();
  const currentPepper = peppers.get(pepperVersion)?.[0] ?? randomBytes(32);
  /**
   * The number of comparisons. It is the same for every pepper version, even for an unknown version, so that the time
   * reveals nothing.
   */
  const most = Math.max(...[...peppers.values()].map(({ length }) => length));
  const nobodysPeppers = Array.from({ length: most }, () => randomBytes(32));
  const peppersOf = (version: number): Buffer[] => [...(peppers.get(version) ?? []), ...nobodysPeppers].slice(0, most);
  const hash = (secret: string): HashedSecret => ({
    secretHash: new Uint8Array(hashWith(currentPepper, secret)),
    pepperVersion,
  });
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
      const equal = peppersOf(expected.pepperVersion).map((pepper) =>
        timingSafeEqual(hashWith(pepper, secret), expected.secretHash),
      );
      return equal.includes(true) && stored !== null;
    },
    renew: (secret, stored) => {
      const current = hash(secret);
      return stored.pepperVersion === pepperVersion && timingSafeEqual(current.secretHash, stored.secretHash)
        ? null
        : current;
    },
  };
}

/** Hashes the inputs of a derived secret, because HKDF in Node accepts at most 1,024 bytes of info. */
const hashOf = (info: string): Buffer => createHmac('sha256', 'minted-secret').update(info).digest();
