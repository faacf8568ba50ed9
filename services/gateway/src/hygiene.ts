import type { IncomingMessage } from 'node:http';
import { problem } from '@drydock/contracts/platform/problem';

/**
 * The most headers of a request. The server accepts one header more, so that the gateway notices the excess. Node
 * silently drops headers beyond its own maximum.
 */
export const headersMax = 100;

/**
 * Headers that may not be repeated, because one program could use the first copy and another program the last. A second
 * Authorization is refused later with 401, and a second Idempotency-Key with 422 where the endpoint accepts one.
 */
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
 * Refuses, before every other check, a request that two programs could read differently (400 `malformed_request`) and a
 * request with too many headers (431). Returns the lower-case names of the headers that were sent more than once.
 */
export function assertClean(request: IncomingMessage): ReadonlySet<string> {
  const { rawHeaders, headers } = request;
  if (rawHeaders.length > headersMax * 2) throw problem('headers_too_large');
  if (headers.host === undefined && request.httpVersion !== '1.0') throw malformed('Send a Host header.');
  const { 'transfer-encoding': coding, 'content-length': length, expect } = headers;
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') throw malformed('The only Transfer-Encoding is chunked.');
    if (length !== undefined) throw malformed('Send Content-Length or Transfer-Encoding, not both.');
  }
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    throw malformed('The only Expect is 100-continue.');
  // Node merges headers of one name into one member, so equal numbers mean that no header is repeated.
  return Object.keys(headers).length * 2 === rawHeaders.length ? nothing : repeatedNames(rawHeaders);
}

const malformed = (detail: string) => problem('malformed_request', { detail });

function repeatedNames(rawHeaders: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase();
    if (seen.has(name)) repeated.add(name);
    seen.add(name);
  }
  for (const name of repeated) if (neverRepeated.has(name)) throw malformed(`Send ${name} once.`);
  return repeated;
}
