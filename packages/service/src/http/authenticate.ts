import type { KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  assertBound,
  type RequestClaims,
  TokenRefusal,
  verifyInternalToken,
  verifyRequestToken,
} from '../access/internal-token';
import type { ReplayMemory } from '../access/replay-memory';
import type { Exchange } from './exchange';

const bearerForm = /^Bearer ([A-Za-z0-9_.-]+)$/;

/**
 * The bearer token of a request. A request with two Authorization headers is refused, because Node would silently use
 * the first.
 */
function bearerToken(request: IncomingMessage): string {
  const given = request.rawHeaders.filter(
    (name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization',
  ).length;
  const token = given === 1 ? bearerForm.exec(request.headers.authorization ?? '')?.[1] : undefined;
  if (token === undefined) throw new TokenRefusal(given === 0 ? 'none' : 'no single bearer token');
  return token;
}

const lineOf = (request: IncomingMessage): { method: string; path: string } => ({
  method: request.method ?? '',
  path: request.url ?? '',
});

/** The process that verifies tokens. */
export interface Verifier {
  /** The name of the service, which is the audience of its tokens. */
  service: string;
  usedTokens: ReplayMemory;
}

/** Authenticates the gateway's token on a customer's call, without I/O. Throws {@link TokenRefusal}. */
export function authenticateRequest(
  exchange: Exchange,
  { keys, service, usedTokens }: Verifier & { keys: readonly KeyObject[] },
): RequestClaims {
  const { request, context } = exchange;
  const expected = { keys, audience: service, issuer: 'gateway', used: usedTokens, ...lineOf(request) };
  const claims = verifyRequestToken(bearerToken(request), expected);
  context.request_id = claims.request_id;
  context.org_id = claims.org_id;
  return claims;
}

/**
 * Authenticates a process of Drydock on an internal path. Returns the name of the process. The key that has signed the
 * token shows which process it is.
 */
export function authenticateInternal(
  exchange: Exchange,
  issuers: Readonly<Record<string, readonly KeyObject[]>>,
  { service, usedTokens }: Verifier,
  body: Uint8Array,
): string {
  const { request, context } = exchange;
  const token = bearerToken(request);
  let refusal: unknown = new TokenRefusal('nobody may call this');
  for (const [issuer, keys] of Object.entries(issuers)) {
    try {
      const claims = verifyInternalToken(token, {
        keys,
        issuer,
        audience: service,
        used: usedTokens,
        ...lineOf(request),
      });
      assertBound(claims, { body });
      context.request_id = claims.request_id;
      return issuer;
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal;
}
