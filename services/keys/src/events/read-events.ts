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
import { type EventScope, findEvent, listEvents as listRows, type PlacedEvent } from './event.store';

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

/** An id that is smaller than the id of every event. */
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
  const event = isId ? await findEvent(database.sql(), caller, eventId) : null;
  if (event !== null) return event.seq;
  const detail = 'There is no event with this id, or it is older than 30 days. Read the list from its newest event on.';
  throw problem('invalid_request', { detail, errors: [{ pointer, code: 'unknown_event', detail }] });
}

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
      const rows = await listRows(database.sql(), scopeOf(caller, query), { order, position, take: page.limit + 1 });
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ seq }) => seq, view }) };
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
/** The longest wait without a query. Only a stream that is not told of its events would need it. */
const waitMs = 60_000;

/** Streams events from now on. A client that names the last event it received gets all later events. */
export const watchEvents = (context: HandlerContext) =>
  ({
    stream: async ({ caller, query, lastEventId, signal }) => {
      const after = lastEventId ?? query.after;
      const scope = scopeOf(caller, query);
      if (after !== undefined)
        return eventsAfter(context, scope, { id: after, seq: await placeOf(context, caller, after, '?after') }, signal);
      const all = { ...scope, types: null, resource: null };
      const [newest] = await listRows(context.database.sql(), all, { order: 'newest', position: null, take: 1 });
      return eventsAfter(context, scope, newest ?? { id: beforeAll, seq: '0' }, signal);
    },
  }) satisfies StreamHandlers<typeof watchEndpoint>;

/**
 * The first message names the event after which the stream begins. A client that loses the connection before the first
 * event can continue from this id without a gap.
 */
async function* eventsAfter(
  { database, sequencer }: HandlerContext,
  scope: EventScope,
  from: Pick<PlacedEvent, 'id' | 'seq'>,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  yield { id: from.id, event: 'ready', data: {} };
  const bell = new Bell(signal);
  const unwatch = sequencer.watch(scope, () => bell.ring());
  try {
    for (let position = from.seq; !signal.aborted; ) {
      const events = await listRows(database.sql(), scope, { order: 'oldest', position, take: batchMax });
      for (const event of events) yield { id: event.id, event: event.type, data: view(event) };
      const last = events.at(-1);
      if (last !== undefined) position = last.seq;
      // A call of `heard` during the query ends the pause at once.
      if (events.length < batchMax) await bell.pause(0, waitMs);
    }
  } finally {
    unwatch();
  }
}
