import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Craft, type CraftedEntry, craftArchive, craftKey } from '../../test/craft-archive';
import { reasonOf } from '../../test/memory-archive';
import { freshFolder, removeFolders } from '../../test/trees';
import { type ExtractOptions, extract } from '../extract/extract';
import { verifyArchive } from './verify-archive';

afterAll(removeFolders);

const content = Buffer.from('harm');
const attribute = (name: string): Buffer =>
  Buffer.concat([Buffer.from([0, name.length, 0, 0, 0, 1]), Buffer.from(`${name}x`)]);
const directory = (path: string): CraftedEntry => ({ path, type: 'directory' });
const symlink = (path: string, link: string): CraftedEntry => ({ path, type: 'symlink', link });

/**
 * Extracts a hostile archive that is sealed correctly, and returns the reason of the refusal. Expects that the target
 * stays empty and its parent folder unchanged.
 */
async function refusal(craft: Craft, options: Partial<ExtractOptions> = {}): Promise<string> {
  const outside = freshFolder();
  writeFileSync(join(outside, 'canary'), 'sings');
  const target = join(outside, 'target');
  mkdirSync(target);
  const before = statSync(outside, { bigint: true }).mtimeNs;
  const reason = await reasonOf(
    extract({ chain: [await craftArchive(craft)], key: craftKey, roots: { files: target }, ...options }),
  );
  expect(readdirSync(outside).sort()).toEqual(['canary', 'target']);
  expect(readdirSync(target)).toEqual([]);
  expect(statSync(outside, { bigint: true }).mtimeNs).toBe(before);
  return reason;
}

const good: CraftedEntry = { path: '0-good', content: Buffer.from('good') };

test.each<[string, CraftedEntry[]]>([
  ['an absolute path', [{ path: '/tmp/drydock-harm', content }]],
  ['a path upwards', [{ path: '../harm', content }]],
  ['a path upwards inside', [directory('a'), { path: 'a/../../harm', content }]],
  ['a path upwards through an entry named ..', [directory('a'), directory('a/..'), { path: 'a/../harm', content }]],
  ['a dot in a path', [{ path: './harm', content }]],
  ['an empty name', [directory('a'), { path: 'a//harm', content }]],
  ['a NUL', [{ path: 'a\0b', content }]],
  ['an empty path', [{ path: '', content }]],
  ['a name of 300 bytes', [{ path: 'n'.repeat(300), content }]],
  ['a path of 4001 bytes', [{ path: `a${'/a'.repeat(2000)}`, content }]],
  ['a file through a symlink upwards', [symlink('s', '..'), { path: 's/harm', content }]],
  ['a directory through an absolute symlink', [symlink('s', '/tmp'), directory('s/harm')]],
  ['a symlink to nothing', [symlink('a', '')]],
  ['a symlink with a NUL', [symlink('a', 'b\0c')]],
  ['a file through a symlink', [directory('d'), symlink('s', 'd'), { path: 's/harm', content }]],
  [
    'a file through a file',
    [
      { path: 'f', content },
      { path: 'f/harm', content },
    ],
  ],
  ['a file in no directory', [{ path: 'z/harm', content }]],
  ['a hard link out', [{ path: 'h', type: 'hardlink', link: '../canary' }]],
  ['a hard link to an absolute path', [{ path: 'h', type: 'hardlink', link: '/etc/passwd' }]],
  ['a hard link to a symlink', [symlink('a', 'b'), { path: 'h', type: 'hardlink', link: 'a' }]],
  [
    'a hard link to a later file',
    [
      { path: 'h', type: 'hardlink', link: 'z' },
      { path: 'z', linked: true, content },
    ],
  ],
  ['set-id of a link', [{ ...symlink('a', 'b'), mode: 0o4777 }]],
  ['bits that are no mode', [{ path: 'a', mode: 0o14755, content }]],
  ['an attribute that gives rights', [{ path: 'a', content, attributes: attribute('security.capability') }]],
  [
    'an attribute twice',
    [{ path: 'a', content, attributes: Buffer.concat([attribute('user.a'), attribute('user.a')]) }],
  ],
  [
    'the same path twice',
    [
      { path: 'a', content },
      { path: 'a', content },
    ],
  ],
  [
    'paths out of order',
    [
      { path: 'b', content },
      { path: 'a', content },
    ],
  ],
])('%s is refused whole, before the first write', async (_, entries) => {
  expect(await refusal({ entries: [good, ...entries] })).toBe('hostile_entry');
  const link = await craftArchive({ entries: [good, ...entries] });
  expect(await reasonOf(verifyArchive(link.source, craftKey, link.expected))).toBe('hostile_entry');
});

test('a tree deeper than the caller allows is refused', async () => {
  const deep = Array.from({ length: 1500 }, (_, depth) =>
    directory(
      Array(depth + 1)
        .fill('d')
        .join('/'),
    ),
  );
  expect(await refusal({ entries: deep }, { limits: { depthMax: 1000 } })).toBe('hostile_entry');
});

test.each(['A/a', 'straße/STRASSE', 'caf\u00e9/cafe\u0301', 'ſ/s'])(
  'the twins %s are refused where the file system folds names',
  async (twins) => {
    const names = twins.split('/').map((name) => Buffer.from(name).toString('latin1'));
    const entries = names.sort().map((path) => ({ path, content }));
    expect(await refusal({ entries }, { foldsNames: true })).toBe('hostile_entry');
    const target = join(freshFolder(), 'target');
    await extract({
      chain: [await craftArchive({ entries })],
      key: craftKey,
      roots: { files: target },
      foldsNames: false,
    });
    expect(readdirSync(target)).toHaveLength(2);
  },
);

test.each<[string, Craft]>([
  [
    'an entry fewer',
    {
      entries: [good],
      manifest: (m) => ({ ...m, entries: 2, roots: m.roots.map((root) => ({ ...root, entries: 2 })) }),
    },
  ],
  [
    'other bytes',
    {
      entries: [good],
      manifest: (m) => ({ ...m, raw_bytes: 1, roots: m.roots.map((root) => ({ ...root, raw_bytes: 1 })) }),
    },
  ],
  ['sums that differ', { entries: [good], manifest: (m) => ({ ...m, entries: 7 }) }],
  ['a parent without a base', { entries: [good], manifest: (m) => ({ ...m, base_id: 'other' }) }],
  ['deletions in a full archive', { entries: [good, { path: 'gone', type: 'tombstone', mode: 0 }] }],
  ['a size that no segment holds', { entries: [{ path: 'a', size: 10, content: Buffer.from('123') }] }],
])('an archive that holds %s than declared is refused', async (_, craft) => {
  expect(await refusal(craft)).toBe('mismatch');
});

test('a content with another SHA-256 than recorded is refused', async () => {
  const entries = [{ path: 'a', content, sha256: Buffer.alloc(32, 1) }];
  const link = await craftArchive({ entries });
  const target = join(freshFolder(), 'target');
  expect(await reasonOf(extract({ chain: [link], key: craftKey, roots: { files: target } }))).toBe('mismatch');
  expect(await reasonOf(verifyArchive(link.source, craftKey, link.expected, { contents: true }))).toBe('mismatch');
});

test('more entries or bytes than allowed are refused, declared or held', async () => {
  expect(await refusal({ entries: [good, { path: 'b' }] }, { limits: { entriesMax: 1 } })).toBe('limit_exceeded');
  expect(await refusal({ entries: [good] }, { limits: { rawBytesMax: 3 } })).toBe('limit_exceeded');
  const huge = (m: { roots: { raw_bytes: number }[] }) =>
    m.roots.map((root) => ({ ...root, raw_bytes: Number.MAX_SAFE_INTEGER }));
  expect(
    await refusal({
      entries: [good],
      manifest: (m) => ({ ...m, raw_bytes: Number.MAX_SAFE_INTEGER, roots: huge(m) as typeof m.roots }),
    }),
  ).toBe('limit_exceeded');
});

test('an mtime at the end of time is set as far as the file system goes', async () => {
  const entries = [{ path: 'a', content, mtimeSeconds: 2 ** 47 - 1 }];
  const target = join(freshFolder(), 'target');
  await extract({ chain: [await craftArchive({ entries })], key: craftKey, roots: { files: target } });
  expect(readdirSync(target)).toEqual(['a']);
});

test('a stream root with anything but files, or one path twice, is refused', async () => {
  for (const entries of [[directory('d')], [good, good]]) {
    const link = await craftArchive({ kind: 'stream', entries });
    expect(await reasonOf(verifyArchive(link.source, craftKey, link.expected))).toBe('hostile_entry');
  }
});
