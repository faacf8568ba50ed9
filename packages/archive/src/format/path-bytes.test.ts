import fc from 'fast-check';
import { FoldedNames } from '../read/check-tree';
import { bytesOfText, comparePaths, textOfBytes } from './path-bytes';

test('paths sort as a walk meets them: a directory, what is below it, then its siblings', () => {
  const paths = ['a-b', 'a/b', 'a', 'a/b/c', 'a.txt', 'a/b-c', 'B', 'a0', '\u00ff'];
  expect(paths.sort(comparePaths)).toEqual(['B', 'a', 'a/b', 'a/b/c', 'a/b-c', 'a-b', 'a.txt', 'a0', '\u00ff']);
});

/**
 * The seed is fixed, so that the test has the same input before and after a change of the code. `npm run chaos` uses
 * new seeds.
 */
const seeded = {
  seed: Number(process.env['DRYDOCK_SEED'] ?? (process.env['DRYDOCK_TESTS'] === 'chaos' ? Date.now() % 2 ** 31 : 1)),
};

const segment = fc
  .string({ minLength: 1, maxLength: 3 })
  .map((text) => text.replaceAll('/', '-').replaceAll('\0', '-'));
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((names) => bytesOfText(names.join('/')));

test('the order of paths is total, and equals the order of their lists of names', () => {
  fc.assert(
    fc.property(path, path, (left, right) => {
      const [ours, theirs] = [Math.sign(comparePaths(left, right)), -Math.sign(comparePaths(right, left))];
      expect(ours).toBe(theirs || 0);
      const lists = left.replaceAll('/', '\0') < right.replaceAll('/', '\0') ? -1 : 1;
      expect(ours).toBe(left === right ? 0 : lists);
    }),
    seeded,
  );
});

test('text survives as bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => expect(textOfBytes(bytesOfText(text))).toBe(text)),
    seeded,
  );
});

test('thousands of different names are accepted, and a name that differs only in case is refused', () => {
  const names = new FoldedNames();
  for (let number = 0; number < 5000; number += 1) names.add(`name-${number}`);
  expect(() => names.add('NAME-4999')).toThrow('hostile_entry');
});
