import { type Exchange, headOf } from './exchange';

/**
 * Browsers may call from any origin with a key in `Authorization`. Cookies have no meaning here, so a foreign page gets
 * nothing but what its own key gives it; credentials in the sense of CORS are never allowed.
 */
const sentHeaders =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, traceparent';
/** Two hours, the longest that browsers keep it. */
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
