import { createHash, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Sql } from '../database/sql';
import type { Answer } from '../http/answer';
import { type Claim, claimKey } from './idempotency.store';

/**
 * Returns the same text for equal values, whatever the order of their keys and their white space. The fingerprint of a
 * request is computed from this text.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

export interface IdempotencyLimits {
  /**
   * Seconds for which an attempt owns its key. A retry after a crash waits no longer than this. An attempt that takes
   * longer is refused at its commit, so its effect never happens twice.
   */
  leaseSeconds: number;
  /**
   * Seconds for which an attempt owns its key while `awaitOutcome` waits. They exceed the longest wait of an endpoint
   * (10.5 s, `startDecidedMs` of workflow).
   */
  outcomeLeaseSeconds: number;
  /** Milliseconds for which a second request with the key waits for the answer of the first request. */
  waitMs: number;
}

export const idempotencyLimits: IdempotencyLimits = { leaseSeconds: 15, outcomeLeaseSeconds: 30, waitMs: 5_000 };

const pollMsFirst = 20;
const pollMsMax = 250;
const keyForm = /^[\x21-\x7e]{1,255}$/;

/** The key as it was sent; undefined if there is none. Throws 422 unless it has 1 to 255 visible ASCII characters. */
export function readIdempotencyKey(endpoint: EndpointDefinition, header: string | undefined): string | undefined {
  if (endpoint.idempotency === 'ignored' || header === undefined) return undefined;
  // A repeated header is refused too. Node joins its values with ", ", and a space is not a visible character.
  if (!keyForm.test(header)) throw problem('idempotency_key_invalid');
  return header;
}

interface Attempt {
  callerKeyId: string;
  method: string;
  /** The path of the request, without the query. */
  path: string;
  rawKey: string;
  body: unknown;
  query: Readonly<Record<string, unknown>>;
}

/** The query and the body in one canonical text. A repeated request must have the same text. */
const askedAs = ({ body, query }: Attempt): string =>
  Object.keys(query).length === 0 ? canonicalJson(body) : `${canonicalJson(query)} ${canonicalJson(body)}`;

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * Claims the key, or returns the stored answer of the first request. Throws 422 `idempotency_key_reused` for another
 * body or query. Waits while the first request is still running. If that request outlasts the wait, throws 409, or 503
 * if the endpoint has no 409.
 */
export async function claimOrReplay(
  sql: Sql,
  endpoint: EndpointDefinition,
  attempt: Attempt,
  limits: IdempotencyLimits,
): Promise<{ claim: Claim } | { replay: Answer }> {
  const { callerKeyId, method, path, rawKey } = attempt;
  const id = sha256(JSON.stringify([callerKeyId, method, path, rawKey]));
  const token = randomUUID();
  const request = {
    id,
    token,
    callerKeyId,
    fingerprint: sha256(askedAs(attempt)),
    target: `${method} ${path}`,
    leaseSeconds: limits.leaseSeconds,
  };
  const endsAtMs = performance.now() + limits.waitMs;
  for (let pollMs = pollMsFirst; ; pollMs = Math.min(pollMs * 2, pollMsMax)) {
    const outcome = await claimKey(sql, request);
    if (outcome.kind === 'claimed') return { claim: { id, token, accepted: outcome.accepted } };
    if (outcome.kind === 'answered') return { replay: outcome.answer };
    if (outcome.kind === 'other_body') throw problem('idempotency_key_reused');
    if (performance.now() + pollMs > endsAtMs) throw stillRunning(endpoint);
    await wait(pollMs);
  }
}

function stillRunning(endpoint: EndpointDefinition): Problem {
  if (endpoint.problems.includes('idempotency_in_flight'))
    return problem('idempotency_in_flight', { retryAfterSeconds: 1 });
  return problem('dependency_unavailable', {
    detail: 'The first request with this Idempotency-Key is still running. Send it again after Retry-After.',
    extra: { dependency: 'idempotency' },
    retryAfterSeconds: 1,
  });
}
