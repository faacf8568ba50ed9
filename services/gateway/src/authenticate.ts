import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { BlockList } from 'node:net';
import { parseToken } from '@drydock/contracts/platform/api-token';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import type { Shares } from '@drydock/service/access/shares';
import { addressGroup, clientAddress, isWithin } from './address';
import type { FailureThrottle } from './failure-throttle';
import type { VerificationCache } from './verification-cache';

/** A key that is good. */
export interface KnownKey {
  caller: Caller;
  /** The addresses from which the key can be used; undefined for any. */
  from: BlockList | undefined;
}

/** Null: the token is not good. The reason is not given. */
export type Verified = KnownKey | null;

export interface AuthenticateOptions {
  cache: VerificationCache<Verified>;
  throttle: FailureThrottle;
  /** Limits the questions about unknown tokens, by address, so that they do not delay callers whose keys are known. */
  lookUps: Shares;
  /** Proxies whose X-Forwarded-For is believed. */
  proxies: BlockList | undefined;
}

/**
 * Finds the caller of a request. Synchronous as long as the last answer of keys may be trusted, which is nearly always.
 * Throws (or rejects with) one and the same 401 for every cause, and 503 when keys cannot be asked.
 */
export type Authenticate = (
  request: IncomingMessage,
  repeated: ReadonlySet<string>,
  traceparent?: string,
) => Caller | Promise<Caller>;

/** RFC 9110: the scheme in any case, then spaces. */
const bearerForm = /^bearer +(\S+)$/i;

export function createAuthenticate({ cache, throttle, lookUps, proxies }: AuthenticateOptions): Authenticate {
  const ask = async (
    key: string,
    token: string,
    address: string,
    traceparent: string | undefined,
  ): Promise<KnownKey> => {
    const verified = await cache.verify(key, token, traceparent);
    if (verified !== null) return verified;
    throttle.note(address);
    throw unauthenticated('not a good key');
  };
  const lookUp = async (
    key: string,
    token: string,
    address: string,
    traceparent: string | undefined,
  ): Promise<KnownKey> => {
    // A key that was good when last seen is checked even while its address is throttled: guessing by others must not
    // lock it out.
    if (cache.last(key)) return ask(key, token, address, traceparent);
    if (throttle.isThrottled(address)) throw unauthenticated('throttled');
    const holders = [address];
    if (!lookUps.take(holders)) throw problem('overloaded', { retryAfterSeconds: 1 });
    try {
      return await ask(key, token, address, traceparent);
    } finally {
      lookUps.giveBack(holders);
    }
  };
  /** The refusal is the same as for any bad key, so that a thief of a key learns nothing from another address. */
  const admit = ({ caller, from }: KnownKey, request: IncomingMessage): Caller => {
    if (from !== undefined && !isWithin(from, clientAddress(request, proxies)))
      throw unauthenticated('not from an address of the key');
    return caller;
  };
  return (request, repeated, traceparent) => {
    const { authorization } = request.headers;
    if (authorization === undefined || repeated.has('authorization')) throw unauthenticated('no single Authorization');
    const token = bearerForm.exec(authorization)?.[1] ?? '';
    if (parseToken(token) === null) throw unauthenticated('malformed token');
    const key = hash('sha256', token, 'base64');
    const fresh = cache.fresh(key);
    if (fresh === undefined)
      return lookUp(key, token, addressGroup(clientAddress(request, proxies)), traceparent).then((known) =>
        admit(known, request),
      );
    if (fresh === null) throw unauthenticated('not a good key');
    const caller = admit(fresh, request);
    cache.renew(key, token);
    return caller;
  };
}

const unauthenticated = (internal: string) => problem('unauthenticated', { internal });
