import { Problem } from '@drydock/contracts/platform/problem';
import { deriveKeys } from '../process/secrets';
import { createPager, type PageBinding } from './paging';

const secret = 'ab'.repeat(32);
const pager = createPager(deriveKeys(secret, 'cursor'));
const binding: PageBinding = { list: 'listThings', keyId: 'key-1', filter: '' };
const now = new Date('2026-11-21T00:00:00.000Z');
const give = { positionOf: (id: number) => String(id), view: (id: number) => ({ id }) };

const codeOf = (work: () => unknown): string => {
  try {
    work();
    return 'accepted';
  } catch (error) {
    return error instanceof Problem ? error.code : String(error);
  }
};
const cursor = pager.pageOf([3, 2, 1], { limit: 2, after: null }, binding, now, give).page.next_cursor ?? '';
const open = (given: string, changes: Partial<PageBinding> = {}, at = now): string =>
  codeOf(() => pager.read({ cursor: given }, { ...binding, ...changes }, at));

test('a page has a cursor only if there is more, and the cursor contains the last position', () => {
  const page = pager.pageOf([3, 2, 1], { limit: 2, after: null }, binding, now, give);
  expect(page).toEqual({ data: [{ id: 3 }, { id: 2 }], page: { next_cursor: cursor, has_more: true, limit: 2 } });
  expect(pager.read({ cursor, limit: '2' }, binding, now)).toEqual({ limit: 2, after: '2' });
  expect(pager.pageOf([1], { limit: 2, after: '2' }, binding, now, give).page).toEqual({
    next_cursor: null,
    has_more: false,
    limit: 2,
  });
});

test('a cursor is refused for another key, filter, list or service, and after 72 hours', () => {
  const hours = (count: number) => new Date(now.getTime() + count * 3_600_000);
  expect(open(cursor, {}, hours(72))).toBe('accepted');
  expect(open(cursor, {}, hours(72.01))).toBe('invalid_cursor');
  for (const changes of [{ keyId: 'key-2' }, { filter: 'org' }, { list: 'listOthers' }])
    expect(open(cursor, changes)).toBe('invalid_cursor');
  expect(codeOf(() => createPager(deriveKeys(secret, 'other')).read({ cursor }, binding, now))).toBe('invalid_cursor');
});

test('no cursor with a changed bit or byte is accepted', () => {
  for (let index = 0; index < cursor.length; index += 1) {
    for (const character of ['A', 'B', '_', '.', '=', '%']) {
      if (cursor[index] === character) continue;
      expect(open(cursor.slice(0, index) + character + cursor.slice(index + 1))).toBe('invalid_cursor');
    }
  }
  for (const junk of ['', '.', 'a', `${cursor}A`, `${cursor}.`, `${cursor}=`, 'A'.repeat(10_240), '\u0000'])
    expect(open(junk)).toBe('invalid_cursor');
});

test.each([
  [undefined, 50],
  ['1', 1],
  ['100', 100],
  ['101', 100],
  ['999999999999', 100],
])('limit %s means %i', (limit, expected) => {
  expect(pager.read({ limit }, binding, now).limit).toBe(expected);
});

test.each(['0', '-1', '1.5', '1;', '1e2', ' 1', '', 'abc', '١', '+5'])('limit %j is refused', (limit) => {
  expect(codeOf(() => pager.read({ limit }, binding, now))).toBe('invalid_limit');
});
