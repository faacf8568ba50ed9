import {
  type getEvent as getEndpoint,
  listEvents as listEndpoint,
  typesMeant,
  type watchEvents as watchEndpoint,
} from '@drydock/contracts/keys/events';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { Bell } from '@drydock/service/effects';
import type { ReadHandlers, StreamEvent, StreamHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import {
  type EventScope,
  findEvent,
  findPlace,
  listEvents as listRows,
  type Place,
  type PlacedEvent,
} from './event.store';

const view = ({ seq: _seq, ...event }: PlacedEvent) => event;

const scopeOf = (
  { orgId, mode }: Caller,
  query: { type?: string | undefined; resource?: string | undefined },
): EventScope => ({
  orgId,
  mode,
  types: query.type === undefined ? null : typesMeant(query.type),
  resource: query.resource ?? null,
});

/** The id of the place before every event. No event has this id. */
const beforeAll = '00000000-0000-0000-0000-000000000000';

/**
 * The sequence number of the event after which the caller continues. Throws `invalid_request` if there is no such
 * event.
 */
async function placeOf(
  { database }: HandlerContext,
  caller: Caller,
  eventId: string,
  pointer: string,
): Promise<string> {
  if (eventId === beforeAll) return '0';
  const isId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(eventId);
  const seq = isId ? await findPlace(database.sql(), caller, eventId) : null;
  if (seq !== null) return seq;
  const detail = 'There is no event with this id, or it is older than 30 days. Read the list from its newest event on.';
  throw problem('invalid_request', { detail, errors: [{ pointer, code: 'unknown_event', detail }] });
}

/**
 * The newest event of the organisation and mode, whatever its type. It must be read before a query for events: that
 * query then finds all events up to this place, because whoever sees a sequence number sees all smaller ones.
 */
async function readNewest({ database }: HandlerContext, { orgId, mode }: Caller): Promise<Place | undefined> {
  const all = { orgId, mode, types: null, resource: null };
  const [newest] = await listRows(database.sql(), all, { order: 'newest', position: null, take: 1 });
  return newest;
}

const laterOf = (place: Place, other: Place | undefined): Place =>
  other !== undefined && BigInt(other.seq) >= BigInt(place.seq) ? other : place;

export const listEvents = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { database, pager } = context;
      const { type = '', resource = '', after } = query;
      const filter = JSON.stringify([caller.orgId, caller.mode, type, resource, after ?? '']);
      const binding = { list: listEndpoint.id, keyId: caller.keyId, filter };
      const page = pager.read(query, binding, now);
      const position = page.after ?? (after === undefined ? null : await placeOf(context, caller, after, '?after'));
      const order = after === undefined ? 'newest' : 'oldest';
      const newest = after === undefined ? undefined : await readNewest(context, caller);
      const rows = await listRows(database.sql(), scopeOf(caller, query), { order, position, take: page.limit + 1 });
      const found = pager.pageOf(rows, page, binding, now, { positionOf: ({ seq }) => seq, view });
      const isEnd = after !== undefined && !found.page.has_more;
      const end = isEnd ? laterOf(laterOf({ id: after, seq: position ?? '0' }, newest), rows.at(-1)) : null;
      return { status: 200, body: { ...found, next_after: end?.id ?? null } };
    },
  }) satisfies ReadHandlers<typeof listEndpoint>;

export const getEvent = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller, params }) => {
      const event = await findEvent(database.sql(), caller, params.eventId);
      if (event === null) throw problem('event_not_found');
      return { status: 200, body: view(event) };
    },
  }) satisfies ReadHandlers<typeof getEndpoint>;

const batchMax = 100;
/** The longest wait without a query, in case a stream is not told of its events. */
const waitMs = 60_000;

/** Streams events from now on. A client that names the last event it received gets all later events. */
export const watchEvents = (context: HandlerContext) =>
  ({
    stream: async ({ caller, query, lastEventId, signal }) => {
      const after = lastEventId ?? query.after;
      const scope = scopeOf(caller, query);
      const newest = (await readNewest(context, caller)) ?? { id: beforeAll, seq: '0' };
      const from = after === undefined ? newest : { id: after, seq: await placeOf(context, caller, after, '?after') };
      return eventsAfter(context, scope, { from, newest }, signal);
    },
  }) satisfies StreamHandlers<typeof watchEndpoint>;

/**
 * The first message names the event after which the stream begins. A client that loses the connection before the first
 * event can continue from this id without a gap. Once all events up to `newest` have been searched, another `ready`
 * message names `newest`. Without that message, a client whose filter matches nothing would keep an old place, and
 * could not continue from there once the event of that place is removed.
 */
async function* eventsAfter(
  { database, sequencer }: HandlerContext,
  scope: EventScope,
  { from, newest }: { from: Place; newest: Place },
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const readyAt = ({ id }: Place): StreamEvent => ({ id, event: 'ready', data: {} });
  yield readyAt(from);
  const bell = new Bell(signal);
  const unwatch = sequencer.watch(scope, () => bell.ring());
  try {
    for (let position = from.seq; !signal.aborted; ) {
      const events = await listRows(database.sql(), scope, { order: 'oldest', position, take: batchMax });
      for (const event of events) yield { id: event.id, event: event.type, data: view(event) };
      const last = events.at(-1);
      if (last !== undefined) position = last.seq;
      if (events.length === batchMax) continue;
      if (BigInt(newest.seq) > BigInt(position)) {
        position = newest.seq;
        yield readyAt(newest);
      }
      // If the bell rang during the query, the pause ends at once.
      await bell.pause(0, waitMs);
    }
  } finally {
    unwatch();
  }
}
