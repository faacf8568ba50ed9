import { tokenPattern } from '../hosting/verification';
import { base62 } from './base62';
import { crc32 } from './crc32';
import type { Mode } from './values';

/** The parts of a token. A well-formed token proves nothing: only keys knows whether it is good. */
export interface ApiToken {
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

/** The whole token out of its parts. */
export function formatToken({ mode, prefix, secret }: ApiToken): string {
  const text = `dd_${words[mode]}_${prefix}_${secret}`;
  return text + crcOf(text);
}

/** Null for anything whose form or checksum is wrong. So a typing error is refused without a look-up. */
export function parseToken(token: string): ApiToken | null {
  const [, word, prefix, secret, crc] = tokenPattern.exec(token) ?? [];
  if (prefix === undefined || secret === undefined || crc !== crcOf(token.slice(0, -crcLength))) return null;
  return { mode: word === words.live ? 'live' : 'sandbox', prefix, secret };
}
