import { createShares, type Shares } from './shares';

function takeAll(shares: Shares, holders: readonly string[]): number {
  let got = 0;
  while (got <= shares.max && shares.take(holders)) got += 1;
  return got;
}

test('a single holder gets half of the places, and later holders still find some', () => {
  const shares = createShares(200, [1]);
  expect(takeAll(shares, ['greedy'])).toBe(100);
  expect(takeAll(shares, ['other'])).toBe(50);
  expect(shares.take(['third'])).toBe(true);
});

test('an organisation gets no more than its own share, however many keys it uses', () => {
  const shares = createShares(200, [0.5, 1]);
  for (let key = 0; key < 50; key += 1) takeAll(shares, [`key ${key}`, 'greedy']);
  expect(shares.taken).toBeLessThanOrEqual(100);
  expect(takeAll(shares, ['its key', 'other'])).toBeGreaterThan(30);
});

test('ten greedy organisations leave places for an eleventh', () => {
  const shares = createShares(200, [0.5, 1]);
  for (let round = 0; round < 200; round += 1)
    for (let org = 0; org < 10; org += 1) shares.take([`key of ${org}`, `${org}`]);
  expect(takeAll(shares, ['its key', 'other'])).toBeGreaterThan(5);
});

test('places that were given back can be taken again, and their holders are forgotten', () => {
  const shares = createShares(10, [1]);
  for (let round = 0; round < 100; round += 1) {
    const holders = [`holder ${round}`];
    const got = takeAll(shares, holders);
    expect(got).toBe(5);
    for (let given = 0; given < got; given += 1) shares.giveBack(holders);
  }
  expect(shares.taken).toBe(0);
});

test('a single place goes to the first holder that asks', () => {
  const shares = createShares(1, [0.2]);
  expect([shares.take(['one']), shares.take(['other'])]).toEqual([true, false]);
});
