import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import { problem } from '@drydock/contracts/platform/problem';
import { modeSchema } from '@drydock/contracts/platform/values';
import jwt from 'jsonwebtoken';
import { z } from 'zod';
import { secretBytes, secretsIn } from '../process/secrets';
import { createReplayMemory, nextTokenId, type ReplayMemory } from './replay-memory';

/** The wall clock in milliseconds since 1970, for the times in tokens and the `now` of a request. */
export const systemNowMs = (): number => Date.now();

export const tokenLifetimeSeconds = 30;
/**
 * How far the clocks of two machines may differ. A token is refused if it was signed further in the future than this. A
 * token is still accepted for this long after it has expired.
 */
const clockToleranceSeconds = 5;
/** The longest token that is decoded, in bytes. An ordinary token has about 700. */
const tokenBytesMax = 8_192;

/**
 * The kinds of token. `request`: the gateway forwards a customer's call. `internal`: a process of Drydock calls another
 * process on its own behalf.
 */
type TokenKind = 'request' | 'internal';

const headerOf = (kind: TokenKind): string =>
  Buffer.from(`{"alg":"HS256","typ":"drydock-${kind}+jwt"}`).toString('base64url');
/**
 * The encoded header of each kind of token. A token with any other header is refused, so `none`, other algorithms, kid,
 * jku, jwk, x5u and crit are refused without parsing.
 */
const signedHeaders = { request: headerOf('request'), internal: headerOf('internal') } as const;

const callerClaims = {
  key_id: z.string().min(1),
  org_id: z.string().min(1),
  mode: modeSchema,
  scopes: z.array(z.string()),
};
const boundClaims = {
  iss: z.string(),
  aud: z.string(),
  iat: z.int(),
  exp: z.int(),
  jti: z.string(),
  request_id: z.string().regex(/^[A-Za-z0-9_-]{8,64}$/),
  method: z.string(),
  path: z.string(),
  body_sha256: z.string(),
  idempotency_key_sha256: z.string().optional(),
  if_match_sha256: z.string().optional(),
};
const requestClaimsSchema = z.strictObject({ ...boundClaims, ...callerClaims });
const internalClaimsSchema = z.strictObject(boundClaims);
export type RequestClaims = z.infer<typeof requestClaimsSchema>;
export type InternalClaims = z.infer<typeof internalClaimsSchema>;

/** The caller, as the gateway verified it. */
export interface Caller {
  keyId: string;
  orgId: string;
  mode: z.infer<typeof modeSchema>;
  scopes: readonly string[];
}

/** The request that a token is bound to. `path` includes its query, exactly as on the request line. */
export interface BoundRequest {
  requestId: string;
  method: string;
  path: string;
  body?: Uint8Array | undefined;
  idempotencyKey?: string | undefined;
  ifMatch?: string | undefined;
}

/**
 * Makes the key that a process signs with, from the first of `secrets`. A process makes it once, because parsing the
 * hex costs more than a signature.
 */
export const tokenKey = (secrets: string): KeyObject => createSecretKey(secretBytes(secretsIn(secrets)[0]));

/** The keys that a process verifies with, one for each secret. */
export const tokenKeys = (secrets: string): readonly KeyObject[] =>
  secretsIn(secrets).map((each) => createSecretKey(secretBytes(each)));

const sha256 = (data: Uint8Array | string): string => hash('sha256', data, 'base64url');
const emptyBodySha256 = sha256('');
const bodySha256 = (body: Uint8Array | undefined): string =>
  body === undefined || body.length === 0 ? emptyBodySha256 : sha256(body);

function bind(
  issuer: string,
  audience: string,
  bound: BoundRequest,
  nowMs: number,
): z.infer<typeof internalClaimsSchema> {
  const iat = Math.floor(nowMs / 1000);
  // The claims are one literal, because spreading objects costs the gateway more than the signature. JSON leaves
  // undefined claims out.
  return {
    iss: issuer,
    aud: audience,
    iat,
    exp: iat + tokenLifetimeSeconds,
    jti: nextTokenId(issuer, audience),
    request_id: bound.requestId,
    method: bound.method,
    path: bound.path,
    body_sha256: bodySha256(bound.body),
    idempotency_key_sha256: bound.idempotencyKey === undefined ? undefined : sha256(bound.idempotencyKey),
    if_match_sha256: bound.ifMatch === undefined ? undefined : sha256(bound.ifMatch),
  };
}

/**
 * Makes a compact JWT without jsonwebtoken. That library checks claims before it signs them. The checks cost five times
 * as much as the signature and are not needed here. Tokens are verified by jsonwebtoken, because errors in verification
 * are dangerous.
 */
function sign(kind: TokenKind, key: KeyObject, claims: object): string {
  const signed = `${signedHeaders[kind]}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

/** The gateway's token for one call to `audience` (a service's name), on behalf of `caller`. It is valid for 30 s. */
export function signRequestToken(
  key: KeyObject,
  audience: string,
  caller: Caller,
  bound: BoundRequest,
  nowMs = systemNowMs(),
): string {
  const { keyId, orgId, mode, scopes } = caller;
  return sign(
    'request',
    key,
    Object.assign(bind('gateway', audience, bound, nowMs), { key_id: keyId, org_id: orgId, mode, scopes }),
  );
}

/**
 * A token for a call between two processes of Drydock. The gateway signs one to have an API key verified. A service or
 * worker signs one to deliver an outbox, and the client of an agent signs one for each call.
 */
export function signInternalToken(
  key: KeyObject,
  parties: { issuer: string; audience: string },
  bound: BoundRequest,
  nowMs = systemNowMs(),
): string {
  return sign('internal', key, bind(parties.issuer, parties.audience, bound, nowMs));
}

/**
 * The reason why a token was refused. The reason is for the log only. The caller gets the same 401 for every reason.
 */
export class TokenRefusal extends Error {
  override readonly name = 'TokenRefusal';
}

/**
 * Makes the memory of used tokens. Must be called when the process starts. A memory that is made later refuses valid
 * tokens: those that were signed more than 5 s before it was made.
 */
export const rememberTokens = (nowMs = systemNowMs()): ReplayMemory =>
  createReplayMemory({
    beganSeconds: Math.floor(nowMs / 1000),
    toleranceSeconds: clockToleranceSeconds,
    lifetimeSeconds: tokenLifetimeSeconds,
  });

interface Expected {
  /** One of these keys must have signed the token. */
  keys: readonly KeyObject[];
  /** The tokens that this process has accepted before. Each is accepted only once. */
  used: ReplayMemory;
  issuer: string;
  audience: string;
  method: string;
  path: string;
  nowMs?: number;
}

function verify<Claims extends InternalClaims>(
  kind: TokenKind,
  schema: z.ZodType<Claims>,
  token: string,
  expected: Expected,
): Claims {
  if (token.length > tokenBytesMax) throw new TokenRefusal('oversized');
  if (!token.startsWith(`${signedHeaders[kind]}.`)) throw new TokenRefusal('not our header');
  const nowSeconds = Math.floor((expected.nowMs ?? systemNowMs()) / 1000);
  const payload = verifySigned(token, expected, nowSeconds);
  const claims = schema.safeParse(payload);
  if (!claims.success) throw new TokenRefusal('claims');
  const { iat, exp, method, path } = claims.data;
  if (exp - iat > tokenLifetimeSeconds || exp < iat) throw new TokenRefusal('lives too long');
  if (iat > nowSeconds + clockToleranceSeconds) throw new TokenRefusal('from the future');
  if (method !== expected.method || path !== expected.path) throw new TokenRefusal('for another request');
  const refusal = expected.used.refuse(claims.data, nowSeconds);
  if (refusal !== undefined) throw new TokenRefusal(refusal);
  return claims.data;
}

/**
 * The claims of a token that one of the keys has signed. While a secret is rotated there are two keys. The second is
 * tried only if the first has not signed the token.
 */
function verifySigned(token: string, { keys, issuer, audience }: Expected, nowSeconds: number): unknown {
  const options = {
    algorithms: ['HS256'],
    issuer,
    audience,
    clockTimestamp: nowSeconds,
    clockTolerance: clockToleranceSeconds,
  } as const;
  let refusal = 'unreadable';
  for (const key of keys) {
    try {
      return jwt.verify(token, key, { ...options, algorithms: ['HS256'] });
    } catch (error) {
      if (error instanceof Error) refusal = error.message;
      if (refusal !== 'invalid signature') break;
    }
  }
  throw new TokenRefusal(refusal);
}

/**
 * Verifies the gateway's token without I/O and returns its claims. Throws {@link TokenRefusal}. {@link assertBound}
 * checks the body later.
 */
export const verifyRequestToken = (token: string, expected: Expected): RequestClaims =>
  verify('request', requestClaimsSchema, token, expected);

/** Verifies a token of {@link signInternalToken} and returns its claims. Throws {@link TokenRefusal}. */
export const verifyInternalToken = (token: string, expected: Expected): InternalClaims =>
  verify('internal', internalClaimsSchema, token, expected);

/**
 * Throws unless the body, the Idempotency-Key and the If-Match are those for which the token was signed. It is called
 * once the body has arrived.
 */
export function assertBound(
  claims: InternalClaims,
  { body, idempotencyKey, ifMatch }: Pick<BoundRequest, 'idempotencyKey' | 'ifMatch'> & { body: Uint8Array },
): void {
  if (claims.body_sha256 !== bodySha256(body)) throw new TokenRefusal('for another body');
  if (claims.idempotency_key_sha256 !== digestOf(idempotencyKey)) throw new TokenRefusal('for another idempotency key');
  if (claims.if_match_sha256 !== digestOf(ifMatch)) throw new TokenRefusal('for another precondition');
}

const digestOf = (header: string | undefined): string | undefined =>
  header === undefined ? undefined : sha256(header);

export const callerOf = (claims: RequestClaims): Caller => ({
  keyId: claims.key_id,
  orgId: claims.org_id,
  mode: claims.mode,
  scopes: claims.scopes,
});

/**
 * Throws 403 if the caller lacks any of the permissions. The problem names each missing one. The check does not depend
 * on the resource, so a caller without the permission does not learn whether the resource exists.
 */
export function authorise(permissions: readonly string[], caller: Caller): void {
  const missing = permissions.filter((permission) => !caller.scopes.includes(permission));
  if (missing.length === 0) return;
  throw problem('permission_denied', {
    errors: missing.map((permission) => ({ pointer: '', code: 'permission_missing', detail: permission })),
  });
}
