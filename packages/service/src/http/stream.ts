import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { createShares } from '../access/shares';
import { currentRequestSpan, streamAttribute } from '../telemetry/spans';
import { commonHeaders, type Exchange, type ExchangeKit } from './exchange';
import type { HandlerRequest, StreamEvent, StreamHandlers } from './route';

export interface StreamLimits {
  /**
   * The most open streams of a process. They are counted separately from ordinary requests, so that a thousand watchers
   * cannot block other calls.
   */
  openMax: number;
  heartbeatMs: number;
  /**
   * Milliseconds after which a stream ends. The client then reconnects with Last-Event-ID and is authenticated again.
   */
  lifetimeMs: number;
}

/**
 * The largest shares of the free streams: a fifth for a key and two fifths for its organisation, so that others find
 * some free.
 */
export const streamShares = [0.2, 0.4] as const;

export const streamLimits: StreamLimits = { openMax: 200, heartbeatMs: 15_000, lifetimeMs: 60_000 };

type Open = StreamHandlers<EndpointDefinition>['stream'];

export interface Streams {
  run(
    kit: ExchangeKit,
    exchange: Exchange,
    request: HandlerRequest<EndpointDefinition>,
    open: Open,
  ): Promise<undefined>;
  /** Ends every open stream. The clients reconnect, to another process if there is one. */
  endOpen(): void;
  /** Ends every open stream and accepts no new stream. */
  close(): void;
}

export function createStreams(limits: StreamLimits): Streams {
  const ends = new Set<AbortController>();
  const places = createShares(limits.openMax, streamShares);
  let isClosing = false;
  const endOpen = (): void => {
    for (const end of ends) end.abort();
  };
  return {
    endOpen,
    run: async (kit, exchange, request, open) => {
      if (places.taken >= limits.openMax || isClosing) throw problem('overloaded', { retryAfterSeconds: 5 });
      const holders = [request.caller.keyId, request.caller.orgId];
      if (!places.take(holders)) throw problem('too_many_streams', { retryAfterSeconds: 5 });
      // Each stream has its own controller. A signal of AbortSignal.any would stay registered with a source that lives
      // as long as the process.
      const end = new AbortController();
      ends.add(end);
      const { signal } = end;
      exchange.response.once('close', () => end.abort());
      exchange.isStream = true;
      currentRequestSpan()?.setAttributes({ [streamAttribute]: true });
      const lifetime = setTimeout(() => end.abort(), limits.lifetimeMs);
      try {
        const lastEventId = exchange.request.headers['last-event-id'];
        const events = await open({
          ...request,
          signal,
          lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
        });
        if (events === null) {
          exchange.response.writeHead(204, commonHeaders(kit, exchange)).end();
          return undefined;
        }
        exchange.response.writeHead(200, {
          ...commonHeaders(kit, exchange),
          'content-type': 'text/event-stream',
          'x-accel-buffering': 'no',
        });
        exchange.response.flushHeaders();
        await pump(exchange.response, events, signal, limits.heartbeatMs);
        exchange.response.end();
      } finally {
        clearTimeout(lifetime);
        ends.delete(end);
        places.giveBack(holders);
        end.abort();
      }
      return undefined;
    },
    close: () => {
      isClosing = true;
      endOpen();
    },
  };
}

/**
 * Writes events until they end or `signal` is aborted. A slow client slows the source down, so that events do not fill
 * the memory.
 */
async function pump(
  response: ServerResponse,
  events: AsyncIterable<StreamEvent>,
  signal: AbortSignal,
  heartbeatMs: number,
): Promise<void> {
  const iterator = events[Symbol.asyncIterator]();
  const ended = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  const heartbeat = setInterval(() => response.write(':\n\n'), heartbeatMs);
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), ended]);
      if (next === undefined || next.done === true) return;
      if (!response.write(eventText(next.value))) await Promise.race([once(response, 'drain'), ended]);
    }
  } finally {
    clearInterval(heartbeat);
    // The end of the source is not awaited, because a source that hangs must not keep the stream's place.
    void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
}

/**
 * The text of an event by https://html.spec.whatwg.org/multipage/server-sent-events.html. JSON has no line breaks, so
 * one data line is enough.
 */
const eventText = ({ id, event, data }: StreamEvent): string =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ` +
  `${JSON.stringify(data)}\n\n`;
