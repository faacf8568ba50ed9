import { createComeBack } from './places';

let nowMs: number;
beforeEach(() => {
  nowMs = 1_000_000;
});
const refuse = (comeBack: (holder: string) => number, count: number, holder = 'greedy'): number[] =>
  Array.from({ length: count }, () => comeBack(holder));

it('spreads those that are refused at once over the seconds to come, and none over more than thirty', () => {
  const comeBack = createComeBack(100, () => nowMs);
  const told = refuse(comeBack, 10_000);
  expect(told.filter((seconds) => seconds === 1)).toHaveLength(100);
  expect(told.filter((seconds) => seconds === 2)).toHaveLength(100);
  expect(told.filter((seconds) => seconds < 30)).toHaveLength(2_900);
  expect(Math.max(...told)).toBe(30);
});

it('keeps no other holder away for longer', () => {
  const comeBack = createComeBack(100, () => nowMs);
  refuse(comeBack, 10_000);
  expect(refuse(comeBack, 1, 'other')).toEqual([1]);
});

it('has forgotten them when they have come back', () => {
  const comeBack = createComeBack(100, () => nowMs);
  refuse(comeBack, 10_000);
  nowMs += 29_500;
  expect(refuse(comeBack, 1)).toEqual([1]);
  nowMs += 90_000;
  expect(refuse(comeBack, 2)).toEqual([1, 1]);
});
