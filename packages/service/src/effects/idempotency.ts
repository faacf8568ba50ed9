import { createHash, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Database, Sql } from '../database/sql';
import type { Answer } from '../http/answer';
import { createRounds, type Rounds } from '../process/keep-looking';
import type { Log } from '../telemetry/log';

/**
 * Returns the same text for equal values, whatever the order of the members of their objects. The fingerprint of a
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
   * Seconds for which an attempt owns its key. After a crash, a retry can take the key over once this time is over. If
   * an attempt is so slow that its key was taken over, its commit fails. So the effect never happens twice.
   */
  leaseSeconds: number;
  /**
   * Seconds for which an attempt owns its key while `awaitOutcome` waits. This must be more than the longest such wait,
   * which is 10.5 s (`startDecidedMs` of packages/workflow).
   */
  outcomeLeaseSeconds: number;
  /** Milliseconds for which a second request with the key waits for the answer of the first request. */
  waitMs: number;
}

export const idempotencyLimits: IdempotencyLimits = { leaseSeconds: 15, outcomeLeaseSeconds: 30, waitMs: 5_000 };

const pollMsFirst = 20;
const pollMsMax = 250;
const keyForm = /^[\x21-\x7e]{1,255}$/;

/**
 * The key as it was sent. Undefined if there is none, or if the endpoint ignores keys. Throws 422 unless the key has 1
 * to 255 visible ASCII characters.
 */
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
 * Claims the key, or returns the stored answer of the first request. Throws 422 `idempotency_key_reused` if the body or
 * the query is not that of the first request. Waits while the first request is still running. If that request outlasts
 * the wait, throws 409 `idempotency_in_flight`, or 503 if the endpoint does not declare that code.
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

/** Hours for which an Idempotency-Key and its answer are kept for replays. */
const keptHours = 24;

/**
 * An attempt's claim on an Idempotency-Key. The attempt is the first with the key, or has taken over from an earlier
 * attempt whose lease has ended. `accepted` is set if the earlier attempt has committed an effect whose outcome is not
 * known yet.
 */
export interface Claim {
  id: Buffer;
  token: string;
  accepted: unknown;
}

interface ClaimRequest {
  id: Buffer;
  fingerprint: Buffer;
  token: string;
  callerKeyId: string;
  target: string;
  leaseSeconds: number;
}

type ClaimOutcome =
  | { kind: 'claimed'; accepted: unknown }
  | { kind: 'answered'; answer: Answer }
  | { kind: 'running' }
  | { kind: 'other_body' };

interface ClaimRow {
  claimed: boolean;
  same_body: boolean;
  accepted: unknown;
  status: number | null;
  headers: Record<string, string> | null;
  body: string | null;
}

/**
 * Claims the key in three cases: the key is new, its 24 hours are over, or the earlier attempt had the same request and
 * its lease has run out without an answer. Postgres' clock decides about the 24 hours and the lease. In every other
 * case the statement reads the record. If the result has no row, the key is `running`: another attempt has committed
 * the record after this statement's snapshot.
 */
const claimSql = `
WITH claimed AS (
  INSERT INTO idempotency_records AS r (id, fingerprint, claim, lease_expires_at, caller_key_id, target)
  VALUES ($1, $2, $3::uuid, now() + make_interval(secs => $4::float8), $5, $6)
  ON CONFLICT (id) DO UPDATE SET
    fingerprint = excluded.fingerprint, claim = excluded.claim, lease_expires_at = excluded.lease_expires_at,
      created_at = now(),
    accepted = CASE WHEN r.created_at > now() - interval '${keptHours} hours' THEN r.accepted END, status = NULL,
      headers = NULL, body = NULL
  WHERE r.created_at <= now() - interval '${keptHours} hours'
     OR (r.status IS NULL AND r.lease_expires_at <= now() AND r.fingerprint = excluded.fingerprint)
  RETURNING true AS claimed, true AS same_body, accepted, NULL::int AS status, NULL::jsonb AS headers,
    NULL::text AS body
)
SELECT * FROM claimed
UNION ALL
SELECT false, fingerprint = $2, NULL, status, headers, body FROM idempotency_records WHERE id = $1
AND NOT EXISTS (SELECT FROM claimed)`;

async function claimKey(sql: Sql, request: ClaimRequest): Promise<ClaimOutcome> {
  const { id, fingerprint, token, leaseSeconds, callerKeyId, target } = request;
  const [row] = await sql.query<ClaimRow>(claimSql, [id, fingerprint, token, leaseSeconds, callerKeyId, target]);
  if (row === undefined) return { kind: 'running' };
  if (row.claimed) return { kind: 'claimed', accepted: row.accepted ?? undefined };
  if (!row.same_body) return { kind: 'other_body' };
  if (row.status === null) return { kind: 'running' };
  return { kind: 'answered', answer: { status: row.status, headers: row.headers ?? {}, text: row.body ?? '' } };
}

/**
 * Throws if the statement changed no row. In that case this attempt was so slow that another attempt has claimed the
 * key, and this attempt's effect must not be committed.
 */
function assertStillOurs(rows: readonly unknown[]): void {
  if (rows.length > 0) return;
  throw problem('dependency_unavailable', {
    internal: 'the idempotency claim was taken over',
    extra: { dependency: 'idempotency' },
    retryAfterSeconds: 1,
  });
}

/**
 * Stores the answer for the key. Throws if another attempt has claimed the key. For an effect that is answered at once,
 * `sql` belongs to the transaction of the effect. So the effect and the answer are committed together or not at all.
 */
export async function storeAnswer(sql: Sql, claim: Claim, answer: Answer): Promise<void> {
  const rows = await sql.query(
    `UPDATE idempotency_records SET status = $3::int, headers = $4::jsonb, body = $5, accepted = NULL
     WHERE id = $1 AND claim = $2::uuid AND status IS NULL RETURNING true AS stored`,
    [claim.id, claim.token, answer.status, JSON.stringify(answer.headers), answer.text],
  );
  assertStillOurs(rows);
}

/**
 * Binds the key to an accepted effect, and renews the lease, because the outcome of the effect is awaited next. Throws
 * if another attempt has claimed the key.
 */
export async function storeAccepted(sql: Sql, claim: Claim, accepted: unknown, leaseSeconds: number): Promise<void> {
  const rows = await sql.query(
    `UPDATE idempotency_records SET accepted = $3::jsonb, lease_expires_at = now() + make_interval(secs => $4::float8)
     WHERE id = $1 AND claim = $2::uuid AND status IS NULL RETURNING true AS stored`,
    [claim.id, claim.token, JSON.stringify(accepted), leaseSeconds],
  );
  assertStillOurs(rows);
}

/** Frees the key. The next request with the key is carried out as a new one. */
export async function releaseClaim(sql: Sql, claim: Claim): Promise<void> {
  await sql.query('DELETE FROM idempotency_records WHERE id = $1 AND claim = $2::uuid AND status IS NULL', [
    claim.id,
    claim.token,
  ]);
}

/**
 * Frees the key after a failure that may have happened after the commit, unless the key is bound to an effect. A bound
 * key stays bound and its lease ends, so the next request with the key waits for the outcome of that effect.
 */
export async function releaseUnaccepted(sql: Sql, claim: Claim): Promise<void> {
  await sql.query(
    `WITH released AS (DELETE FROM idempotency_records WHERE id = $1 AND claim = $2::uuid AND status IS NULL
        AND accepted IS NULL)
     UPDATE idempotency_records SET lease_expires_at = now() WHERE id = $1 AND claim = $2::uuid AND status IS NULL
     AND accepted IS NOT NULL`,
    [claim.id, claim.token],
  );
}

/** Ends the lease. The next request with this key waits for the outcome of the effect that the key is bound to. */
export async function yieldClaim(sql: Sql, claim: Claim): Promise<void> {
  await sql.query(
    'UPDATE idempotency_records SET lease_expires_at = now() WHERE id = $1 AND claim = $2::uuid AND status IS NULL',
    [claim.id, claim.token],
  );
}

/**
 * Deletes at most `most` keys that are older than 24 hours, and resolves with their number. Callers repeat the call
 * until fewer than `most` keys are deleted.
 */
export async function purgeIdempotency(sql: Sql, most: number): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM idempotency_records WHERE id IN (
       SELECT id FROM idempotency_records WHERE created_at <= now() - interval '${keptHours} hours' ORDER BY created_at
       LIMIT $1::int FOR UPDATE SKIP LOCKED
     ) RETURNING true AS purged`,
    [most],
  );
  return rows.length;
}

/** The most rows that one statement deletes, so that the statement holds no lock for long. */
const rowsMax = 1_000;

/**
 * Deletes idempotency records that are older than 24 hours, at most {@link rowsMax} in a statement. Every process of a
 * service may run this purge. Two purges at the same time skip each other's rows.
 */
export const createIdempotencyPurge = (database: Pick<Database<never>, 'sql'>, log: Log, everyMs = 600_000): Rounds =>
  createRounds(log, 'the removal of old idempotency records', everyMs, async (signal) => {
    while (!signal.aborted && (await purgeIdempotency(database.sql(), rowsMax)) === rowsMax);
  });
