import type { FaultWish } from '@drydock/emulators';

type Answer = FaultWish['answer'];

/**
 * Answers that do not show whether the call has taken effect. A driver must not follow the redirect to `canaryUrl`.
 */
export const unreadableAnswers: ReadonlyArray<[string, (canaryUrl: string) => Answer]> = [
  ['a connection that is cut', () => ({ kind: 'reset' })],
  ['no answer at all', () => ({ kind: 'silence' })],
  [
    'a page of HTML',
    () => ({ kind: 'fixed', status: 200, headers: { 'content-type': 'text/html' }, body: '<html>busy</html>' }),
  ],
  ['JSON that breaks off', () => ({ kind: 'truncated', bytes: 20 })],
  ['JSON of another shape', () => ({ kind: 'fixed', status: 201, body: '{"action":{"id":"seven"},"data":{"a":1}}' })],
  ['100 MB', () => ({ kind: 'endless', bytes: 100_000_000 })],
  ['an answer without an end', () => ({ kind: 'endless' })],
  ['one byte a second', () => ({ kind: 'drip', intervalMs: 1_000 })],
  [
    'a redirect into our own network',
    (canaryUrl) => ({ kind: 'fixed', status: 307, headers: { location: canaryUrl } }),
  ],
  ['a redirect to a file', () => ({ kind: 'fixed', status: 302, headers: { location: 'file:///etc/passwd' } })],
  [
    '500',
    () => ({ kind: 'fixed', status: 500, body: '{"error":{"code":"server_error","message":"x","details":null}}' }),
  ],
  ['502', () => ({ kind: 'fixed', status: 502, body: '<html>Bad Gateway</html>' })],
  [
    '503',
    () => ({ kind: 'fixed', status: 503, body: '{"error":{"code":"unavailable","message":"x","details":null}}' }),
  ],
  ['504', () => ({ kind: 'fixed', status: 504, body: '{"error":{"code":"timeout","message":"x","details":null}}' })],
];

/** Headers of a 429, with the shortest and the longest wait that a driver may report for them, in seconds. */
export const tooManyAnswers: ReadonlyArray<[string, Record<string, string>, number, number]> = [
  ['in 7 seconds', { 'retry-after': '7' }, 7, 7],
  ['at a date in the past', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 1, 1],
  ['nothing', {}, 1, 60],
  ['in 11 days', { 'retry-after': '999999' }, 60, 60],
  ['nonsense', { 'retry-after': 'soon' }, 1, 60],
  [
    'at a reset far away',
    { 'ratelimit-limit': '3600', 'ratelimit-remaining': '0', 'ratelimit-reset': '99999999999' },
    60,
    60,
  ],
];
