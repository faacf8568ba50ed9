import { tableOf } from './output';

test('a table of 200,000 rows is aligned by its widest cell', () => {
  const items = Array.from({ length: 200_000 }, (_none, id) => ({ id }));
  const [head, first, ...rest] = tableOf(['id', 'name'], items).split('\n');
  expect([head, first, rest.length]).toEqual(['ID      NAME', '0       -', 200_000]);
});
