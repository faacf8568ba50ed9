import { placeOf } from './manage-cards';

const counts = new Map([
  ['a', 3],
  ['b', 2],
  ['empty', 0],
]);
const from = { columnId: 'a', position: 1 };

it.each([
  ['nothing', {}, from],
  ['its own column alone', { columnId: 'a' }, from],
  ['the front', { position: 0 }, { columnId: 'a', position: 0 }],
  ['behind the last of its column', { position: 99 }, { columnId: 'a', position: 2 }],
  ['another column alone', { columnId: 'b' }, { columnId: 'b', position: 2 }],
  ['a place in another column', { columnId: 'b', position: 1 }, { columnId: 'b', position: 1 }],
  ['behind the last of another column', { columnId: 'b', position: 9 }, { columnId: 'b', position: 2 }],
  ['an empty column', { columnId: 'empty', position: 5 }, { columnId: 'empty', position: 0 }],
])('a card that is moved to %s', (_what, wanted, place) => {
  expect(placeOf(from, wanted, counts)).toEqual(place);
});
