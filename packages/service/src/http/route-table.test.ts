import { assertMounted } from './route-table';

const promised = [
  { id: 'listBoards', service: 'agency' },
  { id: 'getBoard', service: 'agency' },
  { id: 'listSites', service: 'hosting' },
] as const;
const mount =
  (...ids: string[]) =>
  () =>
    assertMounted(
      'agency',
      ids.map((id) => ({ id })),
      promised,
    );

test('a service does not start without an endpoint of its own, with one twice, or with one of another service', () => {
  expect(mount('getBoard', 'listBoards')).not.toThrow();
  expect(mount('getBoard')).toThrow('agency does not mount listBoards');
  expect(mount('getBoard', 'listBoards', 'getBoard')).toThrow('getBoard');
  expect(mount('getBoard', 'listBoards', 'listSites')).toThrow('listSites');
});
