import { retryAfterSecondsOf } from './vendor-http';

const now = Date.parse('2030-01-01T00:00:00Z');

it.each([
  ['7', 7],
  ['Tue, 01 Jan 2030 00:00:09 GMT', 9],
  [undefined, 2],
  ['soon', 2],
  ['999999', 60],
  ['Tue, 01 Jan 2040 00:00:00 GMT', 60],
  ['0', 1],
  ['Mon, 31 Dec 2029 00:00:00 GMT', 1],
  [['3', '5'], 3],
])('waits by Retry-After %j for %d s', (header, seconds) => {
  expect(retryAfterSecondsOf(header, now)).toBe(seconds);
});
