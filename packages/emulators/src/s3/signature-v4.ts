import { createHash, createHmac } from 'node:crypto';

/** A request as AWS Signature Version 4 signs it. S3 encodes the path only once. */
export interface SignedRequest {
  method: string;
  /** The path as it is sent, encoded. */
  path: string;
  query: URLSearchParams;
  /** Headers by their lower-case names. */
  headers: Readonly<Record<string, string | undefined>>;
  signedHeaders: readonly string[];
  /** The value of x-amz-content-sha256, or UNSIGNED-PAYLOAD. */
  payloadHash: string;
}

export interface SignatureScope {
  secret: string;
  /** In the form YYYYMMDD. */
  day: string;
  region: string;
  /** In the form YYYYMMDDTHHMMSSZ. */
  at: string;
}

export const sha256Hex = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest();

export const scopeText = ({ day, region }: SignatureScope): string => `${day}/${region}/s3/aws4_request`;

function signingKey({ secret, day, region }: SignatureScope): Buffer {
  return hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), 's3'), 'aws4_request');
}

export const signText = (scope: SignatureScope, text: string): string =>
  createHmac('sha256', signingKey(scope)).update(text).digest('hex');

/** Encodes as RFC 3986 says, with upper-case hex. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

function canonicalPath(path: string): string {
  return path
    .split('/')
    .map((segment) => encode(decodeURIComponent(segment)))
    .join('/');
}

function canonicalQuery(query: URLSearchParams): string {
  return [...query]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort((a, b) => (a < b ? -1 : 1))
    .join('&');
}

/** Returns the signature of a request in hex. */
export function signRequest(request: SignedRequest, scope: SignatureScope): string {
  const headers = request.signedHeaders
    .map((name) => `${name}:${(request.headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`)
    .join('');
  const canonical = [
    request.method,
    canonicalPath(request.path),
    canonicalQuery(request.query),
    headers,
    request.signedHeaders.join(';'),
    request.payloadHash,
  ].join('\n');
  return signText(scope, ['AWS4-HMAC-SHA256', scope.at, scopeText(scope), sha256Hex(canonical)].join('\n'));
}
