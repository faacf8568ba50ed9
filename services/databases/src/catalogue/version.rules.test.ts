import { seeded } from '@drydock/testing/seeded-random';
import fc from 'fast-check';
import { compareVersions, isVersion } from '../databases/database.rules';

it.each([
  ['9', '10'],
  ['8.0', '8.4'],
  ['8.4', '8.10'],
  ['16', '17'],
  ['10.5', '10.11'],
  ['10.11', '11.8'],
  ['9.6', '16'],
  ['99999999999999999998', '99999999999999999999'],
])('%s is older than %s', (older, newer) => {
  expect([compareVersions(older, newer), compareVersions(newer, older)]).toEqual([-1, 1]);
});

it.each([
  ['16', '16.0'],
  ['016', '16'],
])('%s and %s are the same version', (a, b) => {
  expect(compareVersions(a, b)).toBe(0);
});

it.each(['', ' 16', '16 ', '16.', '.16', '1e1', '-16', '16..1', '١٦', '16\n', 'latest', '1'.repeat(33)])(
  '%j is no version',
  (text) => {
    expect(isVersion(text)).toBe(false);
  },
);

it('any two versions are ordered as their numbers are, whatever their length', () => {
  const version = fc.array(fc.nat(2_000), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(version, version, (a, b) => {
      const [left, right] = [a.join('.'), b.join('.')];
      const width = Math.max(a.length, b.length);
      const padded = [a, b].map((parts) => [...parts, ...Array<number>(width - parts.length).fill(0)]);
      const differs = (padded[0] ?? []).findIndex((part, at) => part !== padded[1]?.[at]);
      const expected = differs < 0 ? 0 : Math.sign((padded[0]?.[differs] ?? 0) - (padded[1]?.[differs] ?? 0));
      expect(compareVersions(left, right)).toBe(expected);
      expect(compareVersions(right, left)).toBe(expected === 0 ? 0 : -expected);
      expect(isVersion(left)).toBe(true);
    }),
    seeded,
  );
});
