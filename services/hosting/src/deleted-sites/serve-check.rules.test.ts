import { nextServeCheck } from './deleted-site.store';

const since = new Date('2026-11-21T12:00:00Z');
const after = (minutes: number): Date => new Date(since.getTime() + minutes * 60_000);

it.each([
  ['has just come back', 0, 1],
  ['has waited a quarter of an hour', 15, 1],
  ['has waited five hours', 300, 15],
  ['has waited for a week', 7 * 24 * 60, 60],
  ['came back later, by a clock that was set', -5, 1],
])('a site that does not serve and %s is asked again minutes later', (_what, waited, pause) => {
  expect(nextServeCheck(after(waited), since)).toEqual(after(waited + pause));
});
