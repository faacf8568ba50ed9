import fc from 'fast-check';
import type { PathToMake } from './build-tree';

/*
 * Random trees for property tests, with any bytes in names, any modes and times, holes, hard links and symlinks,
 * attributes and access lists.
 */

const byteName = fc
  .oneof(
    { weight: 4, arbitrary: fc.stringMatching(/^[a-zA-Z0-9._-]{1,12}$/) },
    {
      weight: 4,
      arbitrary: fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    },
    { weight: 1, arbitrary: fc.constantFrom('caf\xe9', '\n', ' ', '-n', '\\', '=', '\xff', 'A', 'a', 'index.html') },
    { weight: 1, arbitrary: fc.integer({ min: 200, max: 255 }).map((length) => 'l'.repeat(length)) },
  )
  .filter((name) => !/[/\0]/.test(name) && name !== '.' && name !== '..');

const mtime = fc.oneof(
  fc.constantFrom('0', '-1', '-0.5', '1500000000.000000001', '4294967296.999999999'),
  fc
    .tuple(fc.integer({ min: -2_000_000_000, max: 8_000_000_000 }), fc.integer({ min: 0, max: 999_999_999 }))
    .map(([seconds, nanoseconds]) => `${seconds}.${String(nanoseconds).padStart(9, '0')}`),
);

const content = fc.oneof(
  { weight: 6, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ content: bytes })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 0, max: 2_500_000 }), fc.nat(255))
      .map(([size, byte]) => ({ content: Buffer.alloc(size, byte) })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.integer({ min: 1, max: 20_000_000 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength: 4 }),
      )
      .map(([size, places]) => ({
        sparse: { size, pieces: places.map((place) => [Math.floor(place * size), 'x'] as const) },
      })),
  },
);

const attributes = fc.uniqueArray(
  fc.tuple(
    fc.stringMatching(/^[a-zA-Z0-9._-]{1,30}$/).map((name) => `user.${name}`),
    fc.uint8Array({ maxLength: 60 }),
  ),
  { maxLength: 4, selector: ([name]) => name },
);

const rights = fc.constantFrom('r', 'w', 'x', 'rw', 'rx', 'rwx', '-');
const accessList = (isFolder: boolean) =>
  fc
    .tuple(rights, rights, fc.boolean(), rights)
    .map(([ofUser, ofGroup, hasDefault, ofDefault]) =>
      [`u:{uid}:${ofUser}`, `g:{gid}:${ofGroup}`, ...(isFolder && hasDefault ? [`d:u:{uid}:${ofDefault}`] : [])].join(
        ',',
      ),
    );

const target = fc.oneof(
  fc.constantFrom('.', '..', '/', '/etc/passwd', '../../..', 'index.html', 'a/../b', '\xff'),
  fc
    .uint8Array({ minLength: 1, maxLength: 40 })
    .map((bytes) => Buffer.from(bytes).toString('latin1').replaceAll('\0', '0')),
);

/**
 * A path below one of the folders made so far. `into` chooses the folder as a share of their list: 0.5 is the folder in
 * the middle. A share stays valid when fast-check shrinks the tree, but an index would not.
 */
interface Planted {
  into: number;
  name: string;
  make: Omit<PathToMake, 'path'> & { of?: number };
}

const planted = (): fc.Arbitrary<Planted> => {
  const sometimes = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
  const share = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
  const facts = (isFolder: boolean) =>
    fc.record({
      mode: sometimes(fc.integer({ min: 0, max: 0o7777 })),
      mtime: sometimes(mtime),
      attributes: sometimes(attributes),
      accessList: sometimes(accessList(isFolder)),
    });
  const make = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(content, facts(false)).map(([what, more]) => ({ type: 'file' as const, ...what, ...more })),
    },
    { weight: 3, arbitrary: facts(true).map((more) => ({ type: 'folder' as const, ...more })) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(target, sometimes(mtime))
        .map(([to, at]) => ({ type: 'link' as const, target: to, mtime: at })),
    },
    { weight: 1, arbitrary: facts(false).map(({ mode, mtime: at }) => ({ type: 'fifo' as const, mode, mtime: at })) },
    { weight: 2, arbitrary: share.map((of) => ({ type: 'hard' as const, of })) },
  );
  return fc.record({ into: share, name: byteName, make }) as fc.Arbitrary<Planted>;
};

/** Paths for `buildTree`. Each tree has up to 25 paths below its own folder (`0`, `1`, …). */
export const generatedTrees = (count: number): fc.Arbitrary<PathToMake[]> =>
  fc
    .array(fc.array(planted(), { maxLength: 25 }), { minLength: count, maxLength: count })
    .map((trees) => trees.flatMap((tree, number) => plant(String(number), tree)));

function plant(top: string, tree: readonly Planted[]): PathToMake[] {
  const made: PathToMake[] = [{ path: top, type: 'folder' }];
  const taken = new Set([top]);
  const pick = (from: readonly PathToMake[], share: number): PathToMake | undefined =>
    from[Math.floor(share * from.length)];
  for (const { into, name, make } of tree) {
    const parent = pick(
      made.filter(({ type }) => type === 'folder'),
      into,
    );
    const path = `${parent?.path ?? top}/${name}`;
    if (taken.has(path)) continue;
    const shared =
      make.of === undefined
        ? undefined
        : pick(
            made.filter(({ type }) => type === 'file'),
            make.of,
          );
    if (make.type === 'hard' && shared === undefined) continue;
    taken.add(path);
    made.push({ ...make, path, ...(shared && { target: shared.path }) });
  }
  return made;
}
