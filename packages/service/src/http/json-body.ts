import type { IncomingMessage } from 'node:http';
import type { BodyRefusals } from '@drydock/contracts/platform/endpoint';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import sjson from 'secure-json-parse';

/**
 * The deepest nesting that is accepted. No body of the API is as deep. At this depth, recursive code is far from
 * overflowing its stack.
 */
const depthMax = 32;

/** The reason why a JSON text is refused although a parser might accept it. */
type JsonFault = 'too deep' | 'duplicate key';

/**
 * Matches one string literal or one structural character. Numbers, true, false and null are skipped. A string without a
 * closing quote matches to the end of the text. Otherwise the search for a closing quote would start again at each
 * quote of that string, and could take seconds.
 */
const tokens = /"(?:[^"\\]|\\.?)*"?|[{}[\],:]/gs;

/**
 * Finds nesting beyond {@link depthMax} and duplicate keys in one pass. JSON.parse accepts duplicate keys and uses the
 * last one, so two programs could read two different requests in one body. The syntax is checked later, by the parser.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  const open: Array<Set<string> | null> = [];
  let candidate: string | undefined;
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') {
      if (open.length >= depthMax) return 'too deep';
      open.push(token === '{' ? new Set() : null);
    } else if (token === '}' || token === ']') {
      open.pop();
    } else if (token === ':') {
      const keys = open.at(-1);
      const key = candidate === undefined ? undefined : unescapeKey(candidate);
      if (keys !== undefined && keys !== null && key !== undefined) {
        if (keys.has(key)) return 'duplicate key';
        keys.add(key);
      }
    }
    candidate = token.startsWith('"') ? token : undefined;
  }
  return undefined;
}

/** The key of a string literal with its escapes resolved, so that `"\u0061"` and `"a"` are the same key. */
function unescapeKey(literal: string): string | undefined {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  try {
    return String(JSON.parse(literal));
  } catch {
    return undefined;
  }
}

/** The longest body of a customer's call in bytes: 100 KiB. The advice of `body_too_large` names this limit. */
const bodyBytesMax = 100 * 1024;

/**
 * The longest body of a call between processes of Drydock in bytes: 1 MiB. It exceeds the limit for customers, because
 * a service of an earlier release sends its outbox in batches of a hundred entries, whatever their size is.
 */
export const internalBodyBytesMax = 1024 * 1024;

const nothing = Buffer.alloc(0);

/**
 * Reads the whole body. Throws 422 `body_too_large` as soon as the announced length or the received bytes exceed
 * `bytesMax`. The caller must then close the connection, because the rest is still on its way. Rejects if the client
 * leaves.
 */
export function readBody(request: IncomingMessage, bytesMax = bodyBytesMax): Promise<Buffer> {
  const { 'content-length': announced, 'transfer-encoding': transferEncoding } = request.headers;
  if (transferEncoding === undefined && (announced === undefined || announced === '0')) return Promise.resolve(nothing);
  if (announced !== undefined && Number(announced) > bytesMax) return Promise.reject(problem('body_too_large'));
  return new Promise((resolve, reject) => {
    // The body is collected in one growing buffer. A list of pieces could grow large, because a client may send a
    // hundred thousand pieces of one byte, and each would be an object of a hundred bytes.
    let whole: Buffer = nothing;
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      if (size + chunk.length > bytesMax) {
        request.pause();
        request.removeAllListeners('data');
        reject(problem('body_too_large'));
        return;
      }
      if (size === 0) whole = chunk;
      else {
        if (size + chunk.length > whole.length) whole = grown(whole, size, { needed: size + chunk.length, bytesMax });
        chunk.copy(whole, size);
      }
      size += chunk.length;
    });
    request.on('end', () => resolve(whole.subarray(0, size)));
    request.on('error', reject);
    request.on('close', () => reject(problem('invalid_request', { internal: 'the client went away' })));
  });
}

function grown(bytes: Buffer, used: number, { needed, bytesMax }: Record<'needed' | 'bytesMax', number>): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(bytesMax, Math.max(needed, used * 2, 1_024)));
  bytes.copy(larger, 0, 0, used);
  return larger;
}

/**
 * Despite its name, `ignoreBOM` keeps a byte order mark in the text, so that it can be refused. `fatal` refuses invalid
 * UTF-8.
 */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const contentTypeForm = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
const loneSurrogate = /\p{Surrogate}/u;

/** Throws `code` if the content type is not that of JSON in UTF-8, or if the body has a content encoding. */
export function assertJsonContentType(
  code: BodyRefusals['otherType'],
  contentType: string | undefined,
  contentEncoding: string | undefined,
): void {
  if (contentType === undefined || !contentTypeForm.test(contentType) || contentEncoding !== undefined)
    throw problem(code);
}

/**
 * The value of a JSON body. Throws `code` for invalid JSON, and for JSON that causes trouble later: duplicate keys,
 * keys such as `__proto__`, deep nesting, numbers beyond a double, NUL (Postgres cannot store it) and half surrogate
 * pairs.
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
  // A byte order mark is refused here, because secure-json-parse would remove it.
  if (text.startsWith('\ufeff')) throw notJson('a byte order mark');
  // This check precedes parsing, because the code that walks the parsed value is recursive.
  const ambiguity = findJsonFault(text);
  if (ambiguity !== undefined) throw notJson(ambiguity);
  try {
    value = sjson.parse(text, undefined, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // The parser's error is dropped, because it quotes the body, which may contain a secret.
    throw notJson('syntax, or a prototype key');
  }
  const fault = findUnstorable(value);
  if (fault !== undefined) throw notJson(fault);
  return value;
}

/** The reason why Postgres or a double cannot represent the value; undefined if they can. */
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
