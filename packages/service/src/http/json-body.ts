import type { BodyRefusals } from '@drydock/contracts/platform/endpoint';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import sjson from 'secure-json-parse';
import { findJsonFault } from './json-scan';

/** `ignoreBOM` keeps a byte order mark in the text, so that it can be refused; `fatal` refuses invalid UTF-8. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const contentTypeForm = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
const loneSurrogate = /\p{Surrogate}/u;

/** Throws `code` for a body of another type, or with a content encoding. */
export function assertJsonContentType(
  code: BodyRefusals['otherType'],
  contentType: string | undefined,
  contentEncoding: string | undefined,
): void {
  if (contentType === undefined || !contentTypeForm.test(contentType) || contentEncoding !== undefined)
    throw problem(code);
}

/**
 * The value of a JSON body. Throws `code` for invalid JSON, and for JSON that causes trouble later: duplicate or
 * prototype keys, deep nesting, numbers beyond a double, NUL (Postgres cannot store it) and half surrogate pairs.
 */
export function parseJsonBody(bytes: Uint8Array, code: BodyRefusals['notJson']): unknown {
  const notJson = (internal: string): Problem => problem(code, { internal });
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
  const ambiguity = findJsonFault(text);
  if (ambiguity !== undefined) throw notJson(ambiguity);
  try {
    value = sjson.parse(text, undefined, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // The parser's error is dropped: it quotes the body, and the body may hold a secret.
    throw notJson('syntax, or a prototype key');
  }
  const fault = findUnstorable(value);
  if (fault !== undefined) throw notJson(fault);
  return value;
}

/** The reason why Postgres or a double cannot hold `value`; undefined if they can. */
function findUnstorable(value: unknown): string | undefined {
  if (typeof value === 'string')
    return value.includes('\0') || loneSurrogate.test(value) ? 'NUL or a lone surrogate' : undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'a number beyond a double';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const fault = findUnstorable(key) ?? findUnstorable(member);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
