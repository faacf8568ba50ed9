import { databasePasswords } from './database-password';

test('a password is derived again by the name of its secret while the secret is accepted, although an API and a worker are in different phases of a rotation', () => {
  const [before, after] = ['a1'.repeat(32), 'b2'.repeat(32)];
  const [old, api, worker, done] = [before, `${before},${after}`, `${after},${before}`, after].map(databasePasswords);
  if (!old || !api || !worker || !done) throw new Error('four phases');
  const shown = api.of('database-1');
  expect(shown).toMatch(/^[A-Za-z0-9_-]{32}$/);
  expect([old.of('database-1'), worker.of('database-1', api.madeWith)]).toEqual([shown, shown]);
  expect([worker.of('database-1') === shown, api.of('database-2') === shown]).toEqual([false, false]);
  expect([old, api, worker, done].map(({ areRotated }) => areRotated)).toEqual([false, true, true, false]);
  expect(() => done.of('database-1', old.madeWith)).toThrow('no longer accepted');
});
