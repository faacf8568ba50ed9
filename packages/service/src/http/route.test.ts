import { findUnmounted } from './route';

const promised = [
  { id: 'listBoards', service: 'agency' },
  { id: 'getBoard', service: 'agency' },
  { id: 'listSites', service: 'hosting' },
] as const;
const find = (ids: string[], mayBeMissing: boolean) =>
  findUnmounted(
    'agency',
    ids.map((id) => ({ id })),
    promised,
    mayBeMissing,
  );
const mount =
  (...ids: string[]) =>
  () =>
    find(ids, false);

test('a service does not start if an endpoint is missing, mounted twice or of another service', () => {
  expect(mount('getBoard', 'listBoards')).not.toThrow();
  expect(mount('getBoard')).toThrow('agency does not mount listBoards');
  expect(mount('getBoard', 'listBoards', 'getBoard')).toThrow('getBoard');
  expect(mount('getBoard', 'listBoards', 'listSites')).toThrow('listSites');
});

test('in development a service starts if an endpoint is missing, but with no other fault', () => {
  expect(find(['getBoard'], true).map(({ id }) => id)).toEqual(['listBoards']);
  expect(find(['getBoard', 'listBoards'], true)).toEqual([]);
  expect(() => find(['getBoard', 'getBoard'], true)).toThrow('getBoard');
});
