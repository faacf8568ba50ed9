import { FairPace } from './fair-pace';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

/** Records which organisation used each turn. */
function follow(pace: FairPace): { take(organisation: string, times: number): void; turn(): string[] } {
  let went: string[] = [];
  return {
    take: (organisation, times) => {
      for (let number = 0; number < times; number += 1) pace.take(organisation, () => went.push(organisation));
    },
    turn: () => {
      const shown = went.toSorted();
      went = [];
      jest.advanceTimersByTime(10);
      return shown;
    },
  };
}

test('one organisation goes as often as its share in a turn, and the others of it in later ones', () => {
  const { take, turn } = follow(new FairPace({ max: 4, share: 3 }));
  take('greedy', 7);
  expect([turn(), turn(), turn(), turn()].map(({ length }) => length)).toEqual([3, 3, 1, 0]);
});

test('when all is taken, those that wait go one after the other in the next turn', () => {
  const { take, turn } = follow(new FairPace({ max: 4, share: 3 }));
  take('a', 20);
  take('b', 20);
  take('c', 1);
  expect(turn()).toEqual(['a', 'a', 'a', 'b']);
  expect(turn()).toEqual(['a', 'a', 'b', 'c']);
  expect(turn()).toEqual(['a', 'a', 'b', 'b']);
});

test('after a pause it goes on at once', () => {
  const { take, turn } = follow(new FairPace({ max: 4, share: 3 }));
  take('a', 1);
  expect([turn(), turn(), turn()].map(({ length }) => length)).toEqual([1, 0, 0]);
  take('a', 2);
  expect(turn()).toEqual(['a', 'a']);
});
