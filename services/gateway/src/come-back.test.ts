import { createComeBack } from './places';

let nowMs: number;
beforeEach(() => {
  nowMs = 1_000_000;
});
const refuse = (comeBack: (holder: string) => number, count: number, holder = 'greedy'): number[] =>
  Array.from({ length: count }, () => comeBack(holder));

it('spreads the repetitions of simultaneous calls over the next thirty seconds', () => {
  const comeBack = createComeBack(100, () => nowMs);
  const told = refuse(comeBack, 10_000);
  expect(told.filter((seconds) => seconds === 1)).toHaveLength(100);
  expect(told.filter((seconds) => seconds === 2)).toHaveLength(100);
  expect(told.filter((seconds) => seconds < 30)).toHaveLength(2_900);
  expect(Math.max(...told)).toBe(30);
});

it('delays no other holder', () => {
  const comeBack = createComeBack(100, () => nowMs);
  refuse(comeBack, 10_000);
  expect(refuse(comeBack, 1, 'other')).toEqual([1]);
});

it('forgets a holder when its repetitions are due', () => {
  const comeBack = createComeBack(100, () => nowMs);
  refuse(comeBack, 10_000);
  nowMs += 29_500;
  expect(refuse(comeBack, 1)).toEqual([1]);
  nowMs += 90_000;
  expect(refuse(comeBack, 2)).toEqual([1, 1]);
});
