import { problem } from '@drydock/contracts/platform/problem';
import sjson from 'secure-json-parse';
import { findJsonFault } from './json-scan';

/** `ignoreBOM` keeps a byte order mark in the text, so that it can be refused; `fatal` refuses what is not UTF-8. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const contentTypeForm = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
const loneSurrogate = /\p{Surrogate}/u;

const notJson = (internal: string) => problem('invalid_json', { internal });

export function assertJsonContentType(contentType: string | undefined, contentEncoding: string | undefined): void {
  if (contentType === undefined || !contentTypeForm.test(contentType) || contentEncoding !== undefined)
    throw problem('invalid_content_type');
}

/**
 * The value of a JSON body. Throws 422 `invalid_json` for what is no JSON and for what is, but means trouble further on: duplicate or prototype
 * keys, nesting without end, numbers beyond a double, NUL (Postgres cannot store it) and half surrogate pairs.
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw notJson('not UTF-8');
  }
  // secure-json-parse would strip it.
  if (text.startsWith('\ufeff')) throw notJson('a byte order mark');
  // Before parsing: JSON.parse itself recurses.
  const fault = findJsonFault(text);
  if (fault !== undefined) throw notJson(fault);
  try {
    value = sjson.parse(text, undefined, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // What the parser says quotes the body, and the body may hold a secret.
    throw notJson('syntax, or a prototype key');
  }
  assertStorable(value);
  return value;
}

function assertStorable(value: unknown): void {
  if (typeof value === 'string') {
    if (value.includes('\0') || loneSurrogate.test(value)) throw notJson('NUL or a lone surrogate');
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw notJson('a number beyond a double');
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) {
      assertStorable(key);
      assertStorable(member);
    }
  }
}
