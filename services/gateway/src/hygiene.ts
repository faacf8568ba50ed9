import type { IncomingMessage } from 'node:http';
import { problem } from '@drydock/contracts/problem';

/** More are refused. The server keeps one more than this, since Node drops what is beyond its own maximum without a word. */
export const headersMax = 100;

/** Where a second one is an attack on whoever reads the other one. A second Authorization is a 401 and a second Idempotency-Key a 422 of their own, later. */
const neverRepeated = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'content-type',
  'content-encoding',
  'last-event-id',
  'expect',
]);
const nothing: ReadonlySet<string> = new Set();

/**
 * Refuses requests that two readers could read differently: 422 `invalid_header`.
 * Resolves with the lower-case names of the headers that were sent more than once (usually none).
 */
export function assertClean(request: IncomingMessage): ReadonlySet<string> {
  const { rawHeaders, headers } = request;
  if (rawHeaders.length > headersMax * 2) throw problem('invalid_header', { detail: `Send at most ${headersMax} headers.` });
  for (let index = 0; index < rawHeaders.length; index += 2) {
    // Many servers take `x_org_id` for `x-org-id`.
    if (rawHeaders[index]?.includes('_')) throw problem('invalid_header', { detail: 'Header names with an underscore are not accepted.' });
  }
  const { 'transfer-encoding': coding, 'content-length': length, expect } = headers;
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') throw problem('invalid_header', { detail: 'The only Transfer-Encoding is chunked.' });
    if (length !== undefined) throw problem('invalid_header', { detail: 'Send Content-Length or Transfer-Encoding, not both.' });
  }
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    throw problem('invalid_header', { detail: 'The only Expect is 100-continue.' });
  // Node makes one member of all headers of one name: as many members as headers means that none is repeated.
  return Object.keys(headers).length * 2 === rawHeaders.length ? nothing : repeatedNames(rawHeaders);
}

function repeatedNames(rawHeaders: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase();
    if (seen.has(name)) repeated.add(name);
    seen.add(name);
  }
  for (const name of repeated) if (neverRepeated.has(name)) throw problem('invalid_header', { detail: `Send ${name} once.` });
  return repeated;
}
