import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseToken } from '@drydock/contracts/platform/api-token';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import type { Shares } from '@drydock/service/access/shares';
import { addressGroup } from './address';
import type { FailureThrottle } from './failure-throttle';
import type { VerificationCache } from './verification-cache';

/** Null: the token is not good, and nobody says why. */
export type Verified = Caller | null;

export interface AuthenticateOptions {
  cache: VerificationCache<Verified>;
  throttle: FailureThrottle;
  /** Questions under way about tokens that nobody knows, by address: they keep no place from those whose key is good. */
  lookUps: Shares;
}

/**
 * Who calls. Synchronous as long as the last answer of keys may be trusted, for that is nearly every request.
 * Throws (or rejects with) one and the same 401 for every cause, and 503 when keys cannot be asked.
 */
export type Authenticate = (request: IncomingMessage, repeated: ReadonlySet<string>) => Caller | Promise<Caller>;

/** RFC 9110: the scheme in any case, then spaces. */
const bearerForm = /^bearer +(\S+)$/i;

export function createAuthenticate({ cache, throttle, lookUps }: AuthenticateOptions): Authenticate {
  const ask = async (key: string, token: string, address: string): Promise<Caller> => {
    const verified = await cache.verify(key, token);
    if (verified !== null) return verified;
    throttle.note(address);
    throw unauthenticated('not a good key');
  };
  const lookUp = async (key: string, token: string, address: string): Promise<Caller> => {
    // A key that was good when last seen is asked about again even while its address is throttled: guessing by others must not lock it out.
    if (cache.last(key)) return ask(key, token, address);
    if (throttle.isThrottled(address)) throw unauthenticated('throttled');
    const holders = [address];
    if (!lookUps.take(holders)) throw problem('overloaded', { retryAfterSeconds: 1 });
    try {
      return await ask(key, token, address);
    } finally {
      lookUps.giveBack(holders);
    }
  };
  return (request, repeated) => {
    const { authorization } = request.headers;
    if (authorization === undefined || repeated.has('authorization')) throw unauthenticated('no single Authorization');
    const token = bearerForm.exec(authorization)?.[1] ?? '';
    if (parseToken(token) === null) throw unauthenticated('malformed token');
    const key = hash('sha256', token, 'base64');
    const fresh = cache.fresh(key);
    if (fresh === undefined) return lookUp(key, token, addressGroup(request.socket.remoteAddress));
    if (fresh === null) throw unauthenticated('not a good key');
    return fresh;
  };
}

const unauthenticated = (internal: string) => problem('unauthenticated', { internal });
