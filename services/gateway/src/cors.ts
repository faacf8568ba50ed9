import { type Exchange, headOf } from './exchange';

/**
 * Browsers may call from any origin with a key in `Authorization`. Cookies have no meaning here, so a foreign page can
 * do only what its own key allows. So CORS never allows credentials.
 */
const sentHeaders =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, traceparent';
/** How long browsers keep the answer: two hours, the longest time that they accept. */
const keptSeconds = '7200';

/** The answer to OPTIONS: the path's methods. It needs no key, because a browser that asks has none to show yet. */
export function answerOptions(exchange: Exchange, methods: string, isClosing: boolean): void {
  const preflight = [
    'Access-Control-Allow-Methods',
    methods,
    'Access-Control-Allow-Headers',
    sentHeaders,
    'Access-Control-Max-Age',
    keptSeconds,
  ];
  const own = [
    'Allow',
    methods,
    'Cache-Control',
    'no-store',
    ...(exchange.request.headers.origin === undefined ? [] : preflight),
  ];
  exchange.response.writeHead(204, headOf(exchange, isClosing, own));
  exchange.response.end();
}
