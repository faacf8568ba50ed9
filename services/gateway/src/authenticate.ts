import { hash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { BlockList } from 'node:net';
import { performance } from 'node:perf_hooks';
import { parseToken, verificationSchema } from '@drydock/contracts/platform/api-token';
import { problem } from '@drydock/contracts/platform/problem';
import { scaled, timeLimit } from '@drydock/process';
import { type Caller, type Shares, signInternalToken } from '@drydock/service/access';
import { addressGroup, clientAddress, isWithin, networksOf } from './address';
import { requestOf, type Upstream } from './upstream';
import type { VerificationCache } from './verification-cache';

interface FailureThrottleOptions {
  /**
   * After this many refused tokens in a window, unknown tokens of the same address are not looked up until the window
   * ends.
   */
  failuresMax: number;
  windowMs: number;
  addressesMax?: number;
  nowMs?: () => number;
}

interface FailureThrottle {
  isThrottled(address: string): boolean;
  note(address: string): void;
}

/**
 * Counts failed look-ups per address in fixed windows, so that nobody who guesses keys can keep the database busy. It
 * remembers at most `addressesMax` addresses, and forgets the oldest when another one comes.
 */
export function createFailureThrottle(options: FailureThrottleOptions): FailureThrottle {
  const { failuresMax, windowMs, addressesMax = 10_000, nowMs = () => performance.now() } = options;
  const windows = new Map<string, { startedMs: number; failures: number }>();
  const current = (address: string) => {
    const window = windows.get(address);
    return window !== undefined && nowMs() - window.startedMs < windowMs ? window : undefined;
  };
  return {
    isThrottled: (address) => (current(address)?.failures ?? 0) >= failuresMax,
    note: (address) => {
      const window = current(address);
      if (window !== undefined) {
        window.failures += 1;
        return;
      }
      windows.delete(address);
      if (windows.size >= addressesMax) for (const oldest of windows.keys()) if (windows.delete(oldest)) break;
      windows.set(address, { startedMs: nowMs(), failures: 1 });
    },
  };
}

/** A key that the keys service has accepted. */
interface KnownKey {
  caller: Caller;
  /** The addresses from which the key can be used; undefined for any. */
  from: BlockList | undefined;
}

/** Null for every refused token. Callers do not learn the reason. */
type Verified = KnownKey | null;

interface AuthenticateOptions {
  cache: VerificationCache<Verified>;
  throttle: FailureThrottle;
  /** Limits the look-ups of unknown tokens by address, so that they do not delay callers whose keys are known. */
  lookUps: Shares;
  /** Proxies whose X-Forwarded-For is believed. */
  proxies: BlockList | undefined;
}

/**
 * Finds the caller of a request. It is synchronous while the last answer of the keys service may be trusted, which is
 * nearly always. Throws (or rejects with) the same 401 for every refusal, and 503 if the keys service cannot be asked
 * or too many look-ups run.
 */
export type Authenticate = (
  request: IncomingMessage,
  repeated: ReadonlySet<string>,
  traceparent?: string,
) => Caller | Promise<Caller>;

/** The form of the header by RFC 9110: the scheme in any case, then spaces and the token. */
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
    // A key that was accepted at its last look-up is looked up even while the caller's address is throttled. Others who
    // guess keys from the same address must not lock the key's owner out.
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
  /**
   * Refuses a key from a wrong address with the same answer as a bad key, so that a thief does not learn that the key
   * is valid.
   */
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

const verifyPath = '/internal/verify';
/**
 * The time limit of a verification in milliseconds. A verification is one indexed read. A caller whose verification
 * takes longer is asked to try again later.
 */
const verifyMs = 2_000;

/**
 * Asks the keys service whether a token is valid now. Rejects with 503 `dependency_unavailable` if the keys service
 * cannot be asked.
 */
export const createAskKeys =
  (keys: Upstream) =>
  (token: string, traceparent?: string): Promise<Verified> =>
    keys.guard(async () => {
      const body = Buffer.from(JSON.stringify({ token }));
      const signal = timeLimit(scaled(verifyMs));
      const { status, text } = await keys.replicas.run((replica) => {
        const bound = { requestId: randomUUID(), method: 'POST', path: verifyPath, body };
        const internalToken = signInternalToken(keys.key, { issuer: 'gateway', audience: 'keys' }, bound);
        const headers = {
          authorization: `Bearer ${internalToken}`,
          'content-type': 'application/json',
          ...(traceparent === undefined ? {} : { traceparent }),
        };
        return requestOf(replica, { method: 'POST', path: verifyPath, headers, body, signal });
      }, true);
      if (status !== 200) {
        throw problem('dependency_unavailable', {
          extra: { dependency: 'keys' },
          retryAfterSeconds: 5,
          internal: `keys answered ${status} to a verification`,
        });
      }
      const verification = verificationSchema.parse(JSON.parse(text));
      if (!verification.valid) return null;
      const { key_id: keyId, org_id: orgId, mode, scopes, allowed_ips: from } = verification;
      return { caller: { keyId, orgId, mode, scopes }, from: from === undefined ? undefined : networksOf(from) };
    });
