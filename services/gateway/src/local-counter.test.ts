import { createLocalCounter } from './quota';

let now = 0;
const counter = () => createLocalCounter(1_000, () => now);
beforeEach(() => {
  now = 0;
});

test('counts each holder in a window of its own, which begins with the first call', () => {
  const count = counter();
  expect(count('one')).toEqual({ consumed: 1, msBeforeNext: 1_000 });
  now = 400;
  expect(count('one')).toEqual({ consumed: 2, msBeforeNext: 600 });
  expect(count('two')).toEqual({ consumed: 1, msBeforeNext: 1_000 });
});

test('begins a new window exactly when the old one ends, whatever other holders do', () => {
  const count = counter();
  count('one');
  now = 999;
  expect(count('one')).toEqual({ consumed: 2, msBeforeNext: 1 });
  count('two');
  now = 1_000;
  expect(count('one')).toEqual({ consumed: 1, msBeforeNext: 1_000 });
  expect(count('two')).toEqual({ consumed: 2, msBeforeNext: 999 });
});
