import { type Facts, remedyFor, reportUpgrade } from './prechecks.rules';

const quiet: Facts = {
  fromMajor: 16,
  toMajor: 18,
  sizeBytes: 1_000_000_000,
  freeBytes: 10_000_000_000,
  preparedTransactions: 0,
  foreignSlots: 0,
  subscriptions: 0,
  oldestTransactionSeconds: 0,
  sessions: 0,
  extensions: [],
  extensionsOfTarget: ['pg_trgm'],
  extensionTables: [],
  keyless: [],
  movingHashes: [],
  unlogged: { count: 0, bytes: 0 },
  largeObjects: { count: 0, bytes: 0 },
  sequences: 0,
  materializedViews: 0,
  regColumns: 0,
  computed: [],
  textSearchColumns: [],
  md5Passwords: 0,
  roles: 0,
};
const keyless = { table: 'log', rows: 100_000, changes: 0, cannotCompare: false, isKeyComputed: false };
const codesOf = (facts: Partial<Facts>): string[] =>
  reportUpgrade({ ...quiet, ...facts }).findings.map(({ level, code }) => `${level} ${code}`);

test('a database with nothing special is upgraded online, with a note that its schema cannot be changed meanwhile', () => {
  expect(reportUpgrade(quiet)).toMatchObject({ path: 'logical', pauseSeconds: 0, neededBytes: 2_200_000_000 });
  expect(codesOf({})).toEqual(['INFO ddl_refused']);
});

test.each<[string, Partial<Facts>]>([
  ['prepared_transactions', { preparedTransactions: 1 }],
  ['extension_missing', { extensions: ['adminpack'] }],
  ['extension_tables', { extensionTables: ['topology.layer'] }],
  ['not_enough_space', { freeBytes: 2_199_999_999 }],
])('%s forbids an upgrade', (code, facts) => {
  expect(codesOf(facts)[0]).toBe(`ERROR ${code}`);
});

test('a table without a key is upgraded online unless its changed rows could not be found on the target, or not in time', () => {
  expect(reportUpgrade({ ...quiet, keyless: [keyless] }).path).toBe('logical');
  expect(reportUpgrade({ ...quiet, keyless: [{ ...keyless, rows: 100, changes: 5 }] }).path).toBe('logical');
  expect(reportUpgrade({ ...quiet, keyless: [{ ...keyless, changes: 5 }] })).toMatchObject({
    path: 'offline',
    pauseSeconds: 25,
  });
  expect(reportUpgrade({ ...quiet, keyless: [{ ...keyless, rows: 0, cannotCompare: true }] }).path).toBe('offline');
  expect(reportUpgrade({ ...quiet, keyless: [{ ...keyless, rows: 0, isKeyComputed: true }] })).toMatchObject({
    path: 'offline',
    findings: expect.arrayContaining([
      { level: 'WARNING', code: 'offline_path', detail: expect.stringContaining('generated column') },
    ]),
  });
});

test.each([
  ['function unaccent(text) does not exist', 'search_path'],
  ['text search dictionary "unaccent" does not exist', 'search_path'],
  ['column "buffers_backend" does not exist', 'Change or drop it first'],
])('advice for: %s', (reason, advice) => {
  expect(remedyFor(reason)).toContain(advice);
});
