import { eventDays } from '@drydock/contracts/keys/events';
import type { WebhookDelivery } from '@drydock/contracts/keys/webhooks';
import type { Mode } from '@drydock/contracts/platform/values';
import { type Sql, uuidv7Sql } from '@drydock/service/database';
import { timestampSql } from '@drydock/service/effects';
import { recordAudit } from '../audit/audit.store';
import type { KeysDatabase } from '../context/database.store';

// The pending deliveries of one resource to one webhook form a queue. Only the oldest has a due time; the others wait
// at 'infinity'. The exceptions are a replayed delivery, which is due at once, and a webhook that is switched off,
// whose deliveries all wait. A transaction locks the webhook's row before it adds a delivery or ends one. Otherwise a
// delivery that is added while the delivery before it ends would wait for ever.

/** Adds the webhook deliveries of events that have just been numbered. */
export async function addDeliveries(sql: Sql, seqs: readonly string[]): Promise<void> {
  if (seqs.length === 0) return;
  const locked = await sql.query<{ id: string }>(lockWantingSql, [seqs]);
  if (locked.length > 0) await sql.query(addSql, [seqs, locked.map(({ id }) => id)]);
}

const lockWantingSql = `
  SELECT id::text FROM webhooks WHERE disabled_at IS NULL
    AND (org_id, mode) IN (SELECT DISTINCT org_id, mode FROM events WHERE seq = ANY ($1::bigint[]))
  ORDER BY id FOR NO KEY UPDATE`;

const isWanted = `(event.type = ANY (webhooks.event_types) OR '*' = ANY (webhooks.event_types)
  OR EXISTS (SELECT FROM unnest(webhooks.event_types) AS wanted
    WHERE wanted LIKE '%.*' AND starts_with(event.type, left(wanted, -1))))`;
const isTestOf = `event.resource = '/v1/webhooks/' || webhooks.id`;

// The first new event of a resource is due at once if the webhook has no pending delivery for that resource.
const addSql = `
  INSERT INTO webhook_deliveries (id, webhook_id, org_id, event_id, event_seq, resource, due_at, created_at)
  SELECT ${uuidv7Sql}, webhooks.id, event.org_id, event.id, event.seq, event.resource,
    CASE WHEN row_number() OVER (PARTITION BY webhooks.id, event.resource ORDER BY event.seq) = 1 AND NOT EXISTS (
      SELECT FROM webhook_deliveries earlier
      WHERE earlier.webhook_id = webhooks.id AND earlier.resource = event.resource AND earlier.status = 'pending'
    ) THEN clock_timestamp() ELSE 'infinity' END, clock_timestamp()
  FROM events event JOIN webhooks ON webhooks.org_id = event.org_id AND webhooks.mode = event.mode
  WHERE event.seq = ANY ($1::bigint[]) AND webhooks.id = ANY ($2::uuid[])
    AND CASE WHEN event.type = 'webhook.test' THEN ${isTestOf} ELSE ${isWanted} END
  ORDER BY event.seq ON CONFLICT DO NOTHING`;

/** A delivery that this process has claimed. It belongs to this process until its lease ends. */
export interface Claimed {
  id: string;
  webhookId: string;
  orgId: string;
  attempts: number;
  /** The number of attempts since the delivery was created or last replayed. */
  tries: number;
  url: string;
  generation: number;
  /** The oldest generation of the secret that signs. */
  oldestGeneration: number;
  event: {
    id: string;
    type: string;
    at: string;
    resource: string;
    org_id: string;
    actor_key_id: string | null;
    workflow: unknown;
  };
}

export interface ClaimLimits {
  most: number;
  mostOfOrg: number;
  /** The number of deliveries that this process is sending now, by organisation. */
  sending: Readonly<Record<string, number>>;
  /** The seconds after which another process may claim the delivery, if this process has not written a result. */
  leaseSeconds: number;
  /** The organisation that was served last. Organisations with greater ids come next. */
  afterOrg: string;
}

/**
 * Claims up to `most` due deliveries. An organisation gets at most `mostOfOrg` deliveries, including those in
 * `sending`. The organisations take turns, so that an organisation with many deliveries does not delay the others.
 */
export function claimDeliveries(
  sql: Sql,
  { most, mostOfOrg, sending, leaseSeconds, afterOrg }: ClaimLimits,
): Promise<Claimed[]> {
  return sql.query(claimSql, [most, mostOfOrg, JSON.stringify(sending), leaseSeconds, afterOrg]);
}

/**
 * SQL for the organisations that have pending deliveries, in the order of their ids. It takes one index look-up for
 * each organisation, however many deliveries that organisation has. `claimSql` uses it twice: first for the
 * organisations after `afterOrg` ($5), then for the others.
 */
const orgsSql = (name: string, from: string, to: string): string => `
  ${name} (id) AS (
    (SELECT org_id FROM webhook_deliveries WHERE status = 'pending' AND ${from} ORDER BY org_id LIMIT 1)
    UNION ALL
    SELECT (SELECT org_id FROM webhook_deliveries
      WHERE status = 'pending' AND org_id > ${name}.id AND ${to} ORDER BY org_id LIMIT 1)
    FROM ${name} WHERE ${name}.id IS NOT NULL
  )`;

const claimSql = `
  WITH RECURSIVE ${orgsSql('behind', 'org_id > $5::uuid', 'true')},
    ${orgsSql('before', 'org_id <= $5::uuid', 'org_id <= $5::uuid')},
  due AS MATERIALIZED (
    SELECT candidate.id FROM (SELECT id FROM behind UNION ALL SELECT id FROM before) org, LATERAL (
      SELECT id, due_at FROM webhook_deliveries WHERE status = 'pending' AND org_id = org.id
      AND due_at <= statement_timestamp()
      ORDER BY due_at LIMIT greatest(0, $2::int - coalesce(($3::jsonb ->> org.id::text)::int, 0)) FOR UPDATE SKIP LOCKED
    ) candidate LIMIT $1::int
  ), claimed AS (
    UPDATE webhook_deliveries SET attempts = attempts + 1, due_at = clock_timestamp() + make_interval(secs => $4::int),
      last_attempt_at = clock_timestamp()
    FROM due WHERE webhook_deliveries.id = due.id RETURNING webhook_deliveries.*
  )
  SELECT claimed.id::text, webhook_id::text AS "webhookId", claimed.org_id::text AS "orgId", attempts,
    attempts - attempts_before AS tries,
    url, generation, CASE WHEN previous_until > clock_timestamp() THEN coalesce(oldest_generation, generation - 1)
      ELSE generation END AS "oldestGeneration",
    json_build_object('id', event.id, 'type', event.type, 'at', ${timestampSql('event.at')}, 'org_id', event.org_id,
      'resource', event.resource,
      'actor_key_id', event.actor_key_id, 'workflow', event.workflow) AS event
  FROM claimed JOIN webhooks ON webhooks.id = webhook_id JOIN events event ON event.id = event_id`;

export interface Outcome {
  /** The HTTP status of the answer; null if there was no answer. */
  status: number | null;
  /** Null when the receiver accepted the delivery. */
  error: string | null;
  /** Whether the receiver has answered 410 Gone. */
  isGone: boolean;
}

/**
 * The outcome of an attempt, and the seconds until the next attempt. `retrySeconds` is null if the delivery was
 * accepted, or if no attempt is left.
 */
export interface Settlement extends Outcome {
  retrySeconds: number | null;
}

const failingDays = 5;

/** The result of an attempt at one delivery. `attempts` is the number of the attempt. */
export type Ended = Pick<Claimed, 'id' | 'attempts'> & Settlement;

/**
 * Writes the results of attempts of one webhook. If a delivery has ended and the webhook is on, the next delivery of
 * its resource becomes due. A delivery that another process has claimed since the attempt is left as it is. Resolves
 * with the reason if a result switched the webhook off, otherwise with null.
 */
export const settleDeliveries = (
  database: KeysDatabase,
  webhookId: string,
  ended: readonly Ended[],
): Promise<'failures' | 'gone' | null> =>
  database.transaction(async (tx) => {
    const sql = database.sql(tx);
    const [held] = await sql.query<{ is_off: boolean }>(lockSql, [webhookId]);
    const settled = await sql.query<SettledRow>(settleSql, [JSON.stringify(ended), held?.is_off ?? true]);
    if (held === undefined || held.is_off) return null;
    const over = settled.filter(({ is_over }) => is_over).map(({ resource }) => resource);
    if (over.length > 0) await sql.query(releaseSql, [webhookId, over]);
    const isGone = settled.some(({ is_gone }) => is_gone);
    if (settled.length === 0) return null;
    // A webhook that accepted any of the deliveries is not failing.
    if (!isGone && settled.some(({ error }) => error === null)) {
      await sql.query('UPDATE webhooks SET failing_since = NULL WHERE id = $1::uuid AND failing_since IS NOT NULL', [
        webhookId,
      ]);
      return null;
    }
    const [webhook] = await sql.query<{ org_id: string; mode: Mode; disabled_reason: 'failures' | 'gone' | null }>(
      failingSql,
      [webhookId, isGone],
    );
    if (webhook === undefined || webhook.disabled_reason === null) return null;
    await holdDeliveries(sql, webhookId);
    const entry = {
      orgId: webhook.org_id,
      action: 'webhook.disable',
      target: `/v1/webhooks/${webhookId}`,
      at: new Date(),
    } as const;
    await recordAudit(tx, { keyId: null, mode: webhook.mode }, entry);
    return webhook.disabled_reason;
  });

interface SettledRow {
  resource: string;
  error: string | null;
  is_gone: boolean;
  is_over: boolean;
}

const lockSql = 'SELECT disabled_at IS NOT NULL AS is_off FROM webhooks WHERE id = $1::uuid FOR NO KEY UPDATE';

// If the webhook was switched off during the attempt ($2), a refused delivery waits with the webhook's other
// deliveries.
const settleSql = `
  UPDATE webhook_deliveries SET last_status = ended.status, last_error = ended.error,
    status = CASE WHEN error IS NULL THEN 'delivered' WHEN "retrySeconds" IS NULL THEN 'failed' ELSE 'pending'
      END::webhook_delivery_status,
    due_at = CASE WHEN error IS NOT NULL AND "retrySeconds" IS NOT NULL
    AND NOT $2::boolean THEN clock_timestamp() + make_interval(secs => "retrySeconds") ELSE 'infinity' END
  FROM jsonb_to_recordset($1::jsonb) AS ended(id uuid, attempts int, status int, error text, "isGone" boolean,
    "retrySeconds" float8)
  WHERE webhook_deliveries.id = ended.id AND webhook_deliveries.attempts = ended.attempts
  AND webhook_deliveries.status = 'pending'
  RETURNING resource, error, "isGone" AS is_gone, webhook_deliveries.status <> 'pending' AS is_over`;

const releaseSql = `
  UPDATE webhook_deliveries SET due_at = clock_timestamp() WHERE due_at = 'infinity' AND id IN (
    SELECT (SELECT id FROM webhook_deliveries WHERE webhook_id = $1::uuid AND resource = over.resource
      AND status = 'pending' ORDER BY event_seq LIMIT 1)
    FROM unnest($2::text[]) AS over(resource))`;

const failingSql = `
  UPDATE webhooks SET failing_since = coalesce(failing_since, clock_timestamp()),
    disabled_at = CASE WHEN $2::boolean
    OR failing_since < clock_timestamp() - interval '${failingDays} days' THEN clock_timestamp() END,
    disabled_reason = CASE WHEN $2::boolean THEN 'gone' WHEN failing_since < clock_timestamp() - interval
      '${failingDays} days' THEN 'failures' END
  WHERE id = $1::uuid AND disabled_at IS NULL RETURNING org_id::text, mode::text, disabled_reason`;

/**
 * Stops the deliveries of a webhook that was switched off. Pending deliveries are kept. The caller has locked the
 * webhook's row.
 */
export const holdDeliveries = (sql: Sql, webhookId: string): Promise<unknown> =>
  sql.query(
    `UPDATE webhook_deliveries SET due_at = 'infinity' WHERE webhook_id = $1::uuid AND status = 'pending'
      AND due_at < 'infinity'`,
    [webhookId],
  );

/** Makes the oldest pending delivery of each resource due at once. The caller has locked the webhook's row. */
export const resumeDeliveries = (sql: Sql, webhookId: string): Promise<unknown> =>
  sql.query(
    `UPDATE webhook_deliveries SET due_at = clock_timestamp() WHERE id IN (
      SELECT DISTINCT ON (resource) id FROM webhook_deliveries WHERE webhook_id = $1::uuid AND status = 'pending'
        ORDER BY resource, event_seq)`,
    [webhookId],
  );

export interface DeliveryRow extends WebhookDelivery {
  seq: string;
}

const columns = `delivery.id::text, event_id::text, event.type AS event_type, delivery.resource, status, attempts,
  CASE WHEN status = 'pending' AND due_at < 'infinity' THEN ${timestampSql('due_at')} END AS next_attempt_at,
  ${timestampSql('last_attempt_at')} AS last_attempt_at,
  last_status, last_error, ${timestampSql('created_at')} AS created_at, event_seq::text AS seq`;

export const listDeliveries = (
  sql: Sql,
  webhookId: string,
  page: { after: string | null; take: number },
): Promise<DeliveryRow[]> =>
  sql.query(
    `SELECT ${columns} FROM webhook_deliveries delivery JOIN events event ON event.id = event_id
     WHERE webhook_id = $1::uuid AND event_seq < $2::bigint ORDER BY event_seq DESC LIMIT $3::int`,
    [webhookId, page.after ?? '9223372036854775807', page.take],
  );

/**
 * Makes a delivery due now, whatever its status, with a new series of attempts. Null if the webhook has no such
 * delivery. The caller has locked the webhook's row.
 */
export async function replayDelivery(sql: Sql, webhookId: string, deliveryId: string): Promise<DeliveryRow | null> {
  const text = `
    WITH delivery AS (
      UPDATE webhook_deliveries SET status = 'pending', due_at = clock_timestamp(), attempts_before = attempts
      WHERE id = $2::uuid AND webhook_id = $1::uuid RETURNING *
    ) SELECT ${columns} FROM delivery JOIN events event ON event.id = event_id`;
  const [row] = await sql.query<DeliveryRow>(text, [webhookId, deliveryId]);
  return row ?? null;
}

/**
 * Removes events that are too old, with their deliveries. A delivery that waited behind a removed delivery becomes due,
 * unless the webhook is off. Resolves with the number of events, at most `max`.
 */
export const purgeEvents = (database: KeysDatabase, max: number): Promise<number> =>
  database.transaction(async (tx) => {
    const sql = database.sql(tx);
    const old = await sql.query<{ id: string }>(oldSql, [max]);
    if (old.length === 0) return 0;
    const ids = old.map(({ id }) => id);
    const heads = await sql.query<{ webhook_id: string; resources: string[] }>(oldHeadsSql, [ids]);
    await sql.query(noteRemovedSql, [ids]);
    await sql.query('DELETE FROM events WHERE id = ANY ($1::uuid[])', [ids]);
    for (const { webhook_id, resources } of heads) await sql.query(releaseSql, [webhook_id, resources]);
    return old.length;
  });

const oldSql = `
  SELECT id::text FROM events WHERE at < statement_timestamp() - interval '${eventDays} days' ORDER BY at LIMIT $1::int
  FOR UPDATE SKIP LOCKED`;

// A reader who has reached the last removed event goes on after it: see `findPlace`.
const noteRemovedSql = `
  INSERT INTO removed_events (org_id, mode, last_id, seq)
  SELECT DISTINCT ON (org_id, mode) org_id, mode, id, seq FROM events
  WHERE id = ANY ($1::uuid[]) AND seq IS NOT NULL ORDER BY org_id, mode, seq DESC
  ON CONFLICT (org_id, mode) DO UPDATE SET last_id = excluded.last_id, seq = excluded.seq
  WHERE excluded.seq > removed_events.seq`;

const oldHeadsSql = `
  SELECT webhooks.id::text AS webhook_id, resources FROM webhooks JOIN (
    SELECT webhook_id, array_agg(DISTINCT resource) AS resources FROM webhook_deliveries
    WHERE event_id = ANY ($1::uuid[]) AND status = 'pending' GROUP BY webhook_id
  ) old ON webhook_id = webhooks.id
  WHERE disabled_at IS NULL ORDER BY webhooks.id FOR NO KEY UPDATE OF webhooks`;
