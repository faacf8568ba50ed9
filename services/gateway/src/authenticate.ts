import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseToken } from '@drydock/contracts/api-token';
import { problem } from '@drydock/contracts/problem';
import type { Caller } from '@drydock/service-kit/internal-token';
import type { FailureThrottle } from './failure-throttle';
import type { VerificationCache } from './verification-cache';

/** Null: the token is not good, and nobody says why. */
export type Verified = Caller | null;

export interface AuthenticateOptions {
  cache: VerificationCache<Verified>;
  throttle: FailureThrottle;
}

/**
 * Who calls. Synchronous as long as the last answer of keys may be trusted, for that is nearly every request.
 * Throws (or rejects with) one and the same 401 for every cause, and 503 when keys cannot be asked.
 */
export type Authenticate = (request: IncomingMessage, repeated: ReadonlySet<string>) => Caller | Promise<Caller>;

const bearer = 'Bearer ';

export function createAuthenticate({ cache, throttle }: AuthenticateOptions): Authenticate {
  const lookUp = async (key: string, token: string, address: string): Promise<Caller> => {
    // A key that was good when last seen is asked about again even while its address is throttled: guessing by others must not lock it out.
    if (throttle.isThrottled(address) && !cache.last(key)) throw unauthenticated('throttled');
    const verified = await cache.verify(key, token);
    if (verified !== null) return verified;
    throttle.note(address);
    throw unauthenticated('not a good key');
  };
  return (request, repeated) => {
    const { authorization } = request.headers;
    if (authorization === undefined || repeated.has('authorization')) throw unauthenticated('no single Authorization');
    const token = authorization.startsWith(bearer) ? authorization.slice(bearer.length) : '';
    if (parseToken(token) === null) throw unauthenticated('malformed token');
    const key = hash('sha256', token, 'base64');
    const fresh = cache.fresh(key);
    if (fresh === undefined) return lookUp(key, token, request.socket.remoteAddress ?? '');
    if (fresh === null) throw unauthenticated('not a good key');
    return fresh;
  };
}

const unauthenticated = (internal: string) => problem('unauthenticated', { internal });
