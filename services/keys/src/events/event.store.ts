import type { Event, EventType } from '@drydock/contracts/keys/events';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database';
import { timestampSql } from '@drydock/service/effects';
import type { Tx } from '../context/database.store';

export type NewEvent = Event & { mode: Mode };

/** A place in the order of all events: the id and the sequence number of the event that a reader has reached. */
export interface Place {
  id: string;
  seq: string;
}

/** An event with its sequence number among all events. */
export interface PlacedEvent extends Event, Place {}

/** The events to read. A null in `types` or `resource` stands for all. */
export interface EventScope {
  orgId: string;
  mode: Mode;
  types: readonly EventType[] | null;
  resource: string | null;
}

/**
 * Stores events, which must be in order, oldest first. An event that exists already stays as it is. Readers see an
 * event only once it has a sequence number.
 */
export async function storeEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO events (id, org_id, mode, type, resource, actor_key_id, workflow, at)
    SELECT id, org_id, mode::mode, type, resource, actor_key_id, workflow, at
    FROM ROWS FROM (jsonb_to_recordset(${JSON.stringify(events)}::jsonb)
      AS (id uuid, org_id uuid, mode text, type text, resource text, actor_key_id uuid, workflow jsonb,
        at timestamptz)) WITH ORDINALITY
      AS given (id, org_id, mode, type, resource, actor_key_id, workflow, at, place)
    ORDER BY place ON CONFLICT (id) DO NOTHING`;
}

const columns = `id::text, type, ${timestampSql('at')} AS at, org_id::text, resource, actor_key_id::text,
  workflow, seq::text`;

/** Lists at most `take` events: the newest events before a sequence number, or the oldest events after it. */
export function listEvents(
  sql: Sql,
  { orgId, mode, types, resource }: EventScope,
  { order, position, take }: { order: 'newest' | 'oldest'; position: string | null; take: number },
): Promise<PlacedEvent[]> {
  const [beyond, direction, from] = order === 'newest' ? ['<', 'DESC', '9223372036854775807'] : ['>', 'ASC', '0'];
  const select = (condition: string): string => `
    SELECT * FROM events WHERE org_id = $1::uuid AND mode = $2::mode AND seq ${beyond} $3::bigint AND ${condition}
    ORDER BY seq ${direction} LIMIT $4::int`;
  const values = [orgId, mode, position ?? from, take];
  if (resource !== null) {
    const condition = 'resource = $5 AND ($6::text[] IS NULL OR type = ANY ($6::text[]))';
    return sql.query(`SELECT ${columns} FROM (${select(condition)}) event`, [...values, resource, types]);
  }
  if (types === null) return sql.query(`SELECT ${columns} FROM (${select('true')}) event`, values);
  // The query reads a range of the index for each type. Otherwise a search for a rare type would walk through the
  // events of all other types.
  const ranges = `unnest($5::text[]) AS wanted (wanted_type), LATERAL (${select('type = wanted_type')}) event`;
  return sql.query(`SELECT ${columns} FROM ${ranges} ORDER BY event.seq ${direction} LIMIT $4::int`, [
    ...values,
    types,
  ]);
}

/** Null if the event does not exist, has no sequence number yet, or belongs to another organisation or mode. */
export async function findEvent(
  sql: Sql,
  { orgId, mode }: Pick<EventScope, 'orgId' | 'mode'>,
  id: string,
): Promise<PlacedEvent | null> {
  const text = `SELECT ${columns} FROM events WHERE id = $3::uuid AND org_id = $1::uuid AND mode = $2::mode
    AND seq IS NOT NULL`;
  const [event] = await sql.query<PlacedEvent>(text, [orgId, mode, id]);
  return event ?? null;
}

/**
 * Returns the sequence number of an event. Null if the organisation and mode have no such event. The last event that
 * was removed for its age still has its number, because a reader who has reached that event has missed nothing.
 */
export async function findPlace(
  sql: Sql,
  { orgId, mode }: Pick<EventScope, 'orgId' | 'mode'>,
  id: string,
): Promise<string | null> {
  const isTheirs = 'org_id = $1::uuid AND mode = $2::mode';
  const text = `
    SELECT seq::text FROM events WHERE id = $3::uuid AND ${isTheirs} AND seq IS NOT NULL
    UNION ALL SELECT seq::text FROM removed_events WHERE last_id = $3::uuid AND ${isTheirs} LIMIT 1`;
  const [place] = await sql.query<{ seq: string }>(text, [orgId, mode, id]);
  return place?.seq ?? null;
}
