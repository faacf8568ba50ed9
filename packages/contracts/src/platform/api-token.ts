import { z } from 'zod';
import { permissionSchema } from './permissions';
import { type Mode, modeSchema, uuidSchema } from './values';

/** Digits, capitals and small letters in the order of ASCII, so that texts of equal length sort as their numbers do. */
export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * Writes a whole number of at least 0 in base62, padded with zeros to `length` characters. Throws RangeError if the
 * number does not fit or is not whole.
 */
export function base62(value: number, length: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError('base62 writes whole numbers from 0');
  let rest = value;
  let text = '';
  for (let place = 0; place < length; place += 1) {
    text = base62Alphabet.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  if (rest !== 0) throw new RangeError(`${value} does not fit in ${length} base62 characters`);
  return text;
}

const table = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/**
 * The CRC-32 of ASCII text, as in zlib and PNG, as an unsigned number. It is computed here, because contracts import
 * only zod and nothing of Node.
 */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let index = 0; index < text.length; index += 1) {
    crc = (crc >>> 8) ^ (table[(crc ^ text.charCodeAt(index)) & 0xff] ?? 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * The parts of a token. A well-formed token proves nothing, because only the keys service knows whether it is valid.
 */
interface ApiToken {
  mode: Mode;
  /** 12 public characters, by which the key is looked up. */
  prefix: string;
  /** The 43 random characters, without the checksum. */
  secret: string;
}

const crcLength = 6;
const words = { live: 'live', sandbox: 'test' } as const;

/** The last six characters of a token: CRC-32 of everything before them, in base62. */
export const crcOf = (text: string): string => base62(crc32(text), crcLength);

export function formatToken({ mode, prefix, secret }: ApiToken): string {
  const text = `dd_${words[mode]}_${prefix}_${secret}`;
  return text + crcOf(text);
}

/** The parts of a token; null if its form or its checksum is wrong. So a typing error is refused without a look-up. */
export function parseToken(token: string): ApiToken | null {
  const [, word, prefix, secret, crc] = tokenPattern.exec(token) ?? [];
  if (prefix === undefined || secret === undefined || crc !== crcOf(token.slice(0, -crcLength))) return null;
  return { mode: word === words.live ? 'live' : 'sandbox', prefix, secret };
}

/**
 * The gateway's request to the keys service, POST /internal/verify. It asks whether the token is valid now, and which
 * key and scopes it stands for. The keys service reads the answer from the primary database.
 */
export const verificationRequestSchema = z.strictObject({ token: z.string().max(200) });

/** The answer to a verification. It gives no reason why a token is not valid. */
export const verificationSchema = z.discriminatedUnion('valid', [
  z.strictObject({ valid: z.literal(false) }),
  z.strictObject({
    valid: z.literal(true),
    key_id: uuidSchema,
    org_id: uuidSchema,
    mode: modeSchema,
    /** Those scopes of the key that its organisation and every organisation above it allow. */
    scopes: z.array(permissionSchema),
    /** Addresses and networks from which the key can be used. Without this field it can be used from anywhere. */
    allowed_ips: z.array(z.string()).min(1).optional(),
  }),
]);
export type Verification = z.infer<typeof verificationSchema>;

/**
 * The form of a token: `dd_<live|test>_<prefix>_<secret>`. The prefix has 12 base62 characters, the secret has 43, and
 * 6 more are the CRC-32 of everything before them.
 */
export const tokenPattern = /^dd_(live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
