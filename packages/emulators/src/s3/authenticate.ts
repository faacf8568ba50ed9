import { createHash, createHmac } from 'node:crypto';
import { isSame } from '../protocol/tokens';
import type { S3Call } from './s3-call';
import { refuse } from './s3-errors';

/** An account that may call the emulator. */
export interface S3Account {
  accessKeyId: string;
  secretAccessKey: string;
  /** Buckets that the account can see, or '*' for all. */
  buckets: readonly string[];
  /** False if every read of an object is AccessDenied. Objects can still be listed. Default: true. */
  mayRead?: boolean | undefined;
  /** False if every PUT and POST is AccessDenied. Default: true. */
  mayWrite?: boolean | undefined;
  /** False if every deletion of an object or a bucket is AccessDenied, also of unlocked versions. Default: true. */
  mayDelete?: boolean | undefined;
}

export interface Caller {
  account: S3Account;
  scope: SignatureScope;
  /** The signature of the request. The signature of the first chunk includes it. */
  signature: string;
  payloadHash: string;
}

interface Claim {
  credential: string;
  signedHeaders: string[];
  signature: string;
  at: string;
  payloadHash: string;
}

const skewMaxMs = 15 * 60_000;

/** Verifies the signature of a call. @throws S3Refusal when it is missing or wrong */
export function authenticate(call: S3Call, accounts: readonly S3Account[], nowMs: number): Caller {
  const claim = call.query.has('X-Amz-Signature') ? presignedClaim(call, nowMs) : headerClaim(call, nowMs);
  const [accessKeyId = '', day = '', region = '', service, terminator] = claim.credential.split('/');
  const account = accounts.find((candidate) => candidate.accessKeyId === accessKeyId);
  if (account === undefined)
    refuse('InvalidAccessKeyId', 'The AWS Access Key Id you provided does not exist in our records.');
  if (
    service !== 's3' ||
    terminator !== 'aws4_request' ||
    !claim.at.startsWith(day) ||
    !claim.signedHeaders.includes('host')
  )
    refuse('SignatureDoesNotMatch', 'The scope of the signature is not this service.');
  const unsigned = Object.keys(call.headers).find(
    (name) => name.startsWith('x-amz-') && !claim.signedHeaders.includes(name),
  );
  if (unsigned !== undefined)
    refuse('AccessDenied', `There were headers present in the request which were not signed: ${unsigned}`);
  const scope = { secret: account.secretAccessKey, day, region, at: claim.at };
  const { method, rawPath: path, query, headers } = call;
  const expected = signRequest(
    { method, path, query, headers, signedHeaders: claim.signedHeaders, payloadHash: claim.payloadHash },
    scope,
  );
  if (!isSame(expected, claim.signature))
    refuse('SignatureDoesNotMatch', 'The request signature we calculated does not match the signature you provided.');
  return { account, scope, signature: claim.signature, payloadHash: claim.payloadHash };
}

function headerClaim({ headers }: S3Call, nowMs: number): Claim {
  const match = /^AWS4-HMAC-SHA256 Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})$/.exec(
    headers['authorization'] ?? '',
  );
  if (match === null) refuse('AccessDenied', 'Access Denied');
  const [, credential = '', signedHeaders = '', signature = ''] = match;
  const at = headers['x-amz-date'] ?? '';
  if (!(Math.abs(timeOf(at) - nowMs) <= skewMaxMs))
    refuse('RequestTimeTooSkewed', 'The difference between the request time and the server time is too large.');
  const payloadHash = headers['x-amz-content-sha256'];
  if (payloadHash === undefined)
    refuse('InvalidRequest', 'Missing required header for this request: x-amz-content-sha256');
  return { credential, signedHeaders: signedHeaders.split(';'), signature, at, payloadHash };
}

function presignedClaim({ query }: S3Call, nowMs: number): Claim {
  const read = (name: string): string => query.get(name) ?? '';
  const at = read('X-Amz-Date');
  const expiresMs = timeOf(at) + Number(read('X-Amz-Expires')) * 1_000;
  if (!(expiresMs > nowMs) || timeOf(at) > nowMs + skewMaxMs) refuse('AccessDenied', 'Request has expired');
  return {
    credential: read('X-Amz-Credential'),
    signedHeaders: read('X-Amz-SignedHeaders').split(';'),
    signature: read('X-Amz-Signature'),
    at,
    payloadHash: 'UNSIGNED-PAYLOAD',
  };
}

/** Returns milliseconds since 1970, or NaN for an impossible date. The callers' comparisons refuse NaN. */
function timeOf(at: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(at);
  if (match === null) refuse('AccessDenied', 'AWS authentication requires a valid Date or x-amz-date header');
  const [, year, month, day, hour, minute, second] = match;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** Checks that the account can see the bucket. @throws S3Refusal AccessDenied, even if the bucket does not exist */
export function assertMayUse({ account }: Caller, bucket: string): void {
  if (!account.buckets.includes('*') && !account.buckets.includes(bucket)) refuse('AccessDenied', 'Access Denied');
}

/** A request as AWS Signature Version 4 signs it. S3 encodes the path once, other services of AWS twice. */
interface SignedRequest {
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

interface SignatureScope {
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
function signRequest(request: SignedRequest, scope: SignatureScope): string {
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
