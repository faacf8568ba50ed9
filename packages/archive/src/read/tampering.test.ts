import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type MemoryArchive, reasonOf } from '../../test/memory-archive';
import { freshFolder, key, type PackedLink, packDirectory, removeFolders } from '../../test/trees';
import { extract } from '../extract/extract';
import { ArchiveError } from '../format/archive-error';
import { completeLimits } from '../format/archive-limits';
import { folderSource, type SealedPiece } from '../format/archive-objects';
import { streamRoot } from '../pack/pack-roots';
import { openChain } from './open-archive';
import { piecesOf, verifyArchive, verifyChain } from './verify-archive';

let link: PackedLink;
let site: string;

beforeAll(async () => {
  site = freshFolder();
  mkdirSync(join(site, 'd'));
  for (let number = 0; number < 20; number += 1)
    writeFileSync(join(site, 'd', `file-${number}`), `content ${number} `.repeat(50));
  link = await packDirectory(site);
});
afterAll(removeFolders);

const verify = (source: MemoryArchive) => reasonOf(verifyArchive(source, key, link.expected));
const flip = (at: number) => (bytes: Buffer) => {
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (at % 8)), at);
  return bytes;
};

test('one bit flipped at any byte of the manifest, of a header or of a MAC is refused', async () => {
  for (const [name, bytes] of link.source.objects) {
    const everywhere = name === 'manifest' ? bytes.length : 72;
    const offsets = [...Array(everywhere).keys(), ...Array.from({ length: 32 }, (_, at) => bytes.length - 1 - at)];
    for (const at of offsets) {
      expect(['tampered', 'foreign', 'wrong_key', 'unsupported_format']).toContain(
        await verify(link.source.with(name, flip(at))),
      );
    }
  }
});

test('one bit flipped at 200 random places is refused', async () => {
  const names = [...link.source.objects.keys()];
  for (let run = 0; run < 200; run += 1) {
    const name = names[run % names.length] ?? '';
    const at = randomInt(link.source.objects.get(name)?.length ?? 0);
    expect(await verify(link.source.with(name, flip(at)))).toEqual(expect.any(String));
  }
});

test('a FIFO, a folder or a device in the place of an object is refused, and blocks no thread', async () => {
  const folder = freshFolder();
  execFileSync('mkfifo', [join(folder, 'manifest')]);
  mkdirSync(join(folder, 'index-00000000'));
  symlinkSync('/dev/zero', join(folder, 'segment-00000000'));
  for (const name of readdirSync(folder)) expect(await reasonOf(folderSource(folder).read(name))).toBe('tampered');
});

test('a truncated or missing object is refused', async () => {
  for (const [name, bytes] of link.source.objects) {
    for (const length of [0, 1, 71, 72, 104, bytes.length - 33, bytes.length - 1]) {
      expect(['truncated', 'tampered']).toContain(
        await verify(link.source.with(name, (whole) => whole.subarray(0, length))),
      );
    }
    const copy = link.source.with(name, (whole) => whole);
    copy.objects.delete(name);
    expect(await verify(copy)).toBe('missing');
  }
});

test('appended bytes and concatenated objects are refused', async () => {
  for (const name of link.source.objects.keys()) {
    expect(await verify(link.source.with(name, (bytes) => Buffer.concat([bytes, Buffer.from('x')])))).toBe('tampered');
    expect(await verify(link.source.with(name, (bytes) => Buffer.concat([bytes, bytes])))).toBe('tampered');
  }
});

describe('an archive whose objects are verified as they come in', () => {
  const gather = async (): Promise<SealedPiece[]> => {
    const pieces: SealedPiece[] = [];
    const archives = await openChain([link], key, completeLimits());
    for (const archive of archives) for await (const piece of piecesOf(archive)) pieces.push(piece);
    return pieces;
  };

  test('names every object but its manifest, with its size, and refuses another in its place', async () => {
    const pieces = await gather();
    expect(pieces.map(({ name }) => name).sort()).toEqual(
      [...link.source.objects.keys()].filter((name) => name !== 'manifest').sort(),
    );
    for (const piece of pieces) {
      const bytes = await link.source.read(piece.name);
      expect(bytes).toHaveLength(piece.size);
      piece.verify(bytes);
      for (const other of pieces.filter(({ name }) => name !== piece.name))
        expect(await reasonOf(Promise.resolve(link.source.read(other.name)).then(piece.verify))).toEqual(
          expect.any(String),
        );
      expect(await reasonOf(Promise.resolve(flip(100)(bytes)).then(piece.verify))).toBe('tampered');
    }
  });

  test('is verified without being read again, and refused when its source cannot vouch for an object', async () => {
    const asked: string[] = [];
    const source = Object.assign(link.source.with('segment-00000000', flip(100)), {
      hold: async ({ name }: SealedPiece) => void asked.push(name),
    });
    await verifyArchive(source, key, link.expected);
    expect(asked).toEqual(['segment-00000000']);
    const lost = Object.assign(
      link.source.with('manifest', (bytes) => bytes),
      { hold: () => Promise.reject(new ArchiveError('missing', 'lost')) },
    );
    expect(await verify(lost)).toBe('missing');
  });
});

test('a wrong key is told apart from tampering', async () => {
  expect(await reasonOf(verifyArchive(link.source, Buffer.alloc(32, 8), link.expected))).toBe('wrong_key');
});

test.each([
  ['siteId', 'foreign'],
  ['orgId', 'foreign'],
  ['archiveId', 'foreign'],
  ['parentMac', 'chain_gap'],
] as const)('an archive with another %s than recorded is refused', async (field, reason) => {
  expect(await reasonOf(verifyArchive(link.source, key, { ...link.expected, [field]: 'other' }))).toBe(reason);
});

test.each(['', '00', 'x'.repeat(64), '0'.repeat(64)])(
  'a recorded MAC of %p matches no archive',
  async (manifestMac) => {
    expect(await reasonOf(verifyArchive(link.source, key, { ...link.expected, manifestMac }))).toBe('replayed_older');
  },
);

test('another packing of the same archive id does not pass for the recorded archive', async () => {
  const again = await packDirectory(site);
  expect(await verify(again.source)).toBe('replayed_older');
});

test('an object of another packing of the same archive id is refused', async () => {
  const again = await packDirectory(site);
  for (const name of ['segment-00000000', 'index-00000000']) {
    const other = again.source.objects.get(name) ?? Buffer.alloc(0);
    expect(['foreign', 'truncated', 'tampered']).toContain(await verify(link.source.with(name, () => other)));
  }
});

test('extraction refuses a flipped bit, whether in a segment or an index block, and leaves no file that counts', async () => {
  const target = join(freshFolder(), 'target');
  const broken = link.source.with('segment-00000000', flip(100));
  expect(await reasonOf(extract({ chain: [{ ...link, source: broken }], key, roots: { files: target } }))).toBe(
    'tampered',
  );
  const untouched = join(freshFolder(), 'target');
  const hidden = link.source.with('index-00000000', flip(100));
  expect(await reasonOf(extract({ chain: [{ ...link, source: hidden }], key, roots: { files: untouched } }))).toBe(
    'tampered',
  );
  expect(readdirSync(untouched)).toEqual([]);
});

test('a segment replaced between verification and extraction is refused', async () => {
  const source = link.source.with('manifest', (bytes) => bytes);
  await verifyArchive(source, key, link.expected, { contents: true });
  source.objects.set('segment-00000000', flip(200)(await source.read('segment-00000000')));
  const target = join(freshFolder(), 'target');
  expect(await reasonOf(extract({ chain: [{ ...link, source }], key, roots: { files: target } }))).toBe('tampered');
});

describe('chains', () => {
  let chain: PackedLink[];
  beforeAll(async () => {
    chain = [link];
    for (let number = 1; number <= 3; number += 1) {
      writeFileSync(join(site, `increment-${number}`), `${number}`);
      chain.push(await packDirectory(site, chain));
    }
  });
  const pick = (...positions: number[]) => positions.map((at) => chain[at] ?? link);

  test.each([
    ['a gap', [0, 2], 'chain_gap'],
    ['no base', [1, 2], 'chain_gap'],
    ['nothing', [], 'chain_gap'],
    ['another order', [0, 2, 1, 3], 'chain_gap'],
    ['base last', [1, 0], 'chain_gap'],
    ['an archive twice', [0, 1, 1], 'chain_cycle'],
    ['a cycle', [0, 1, 2, 0], 'chain_cycle'],
  ] as const)('a chain with %s is refused', async (_, positions, reason) => {
    expect(await reasonOf(verifyChain(pick(...positions), key))).toBe(reason);
  });

  test('a whole chain verifies', async () => {
    expect(await verifyChain(chain, key)).toHaveLength(4);
  });

  test("an increment of another site's chain, or of another base, is refused", async () => {
    const other = await packDirectory(freshFolder());
    const foreign = await packDirectory(site, [other]);
    expect(await reasonOf(verifyChain([link, foreign], key))).toBe('chain_gap');
  });

  test('with the last increment corrupt nothing at all is written', async () => {
    const last = chain[3] ?? link;
    const corrupt = { ...last, source: last.source.with('manifest', flip(200)) };
    const target = join(freshFolder(), 'target');
    expect(await reasonOf(extract({ chain: [...pick(0, 1, 2), corrupt], key, roots: { files: target } }))).toBe(
      'tampered',
    );
    expect(existsSync(target)).toBe(false);
  });
});

/** Creates a root with one stream of this many bytes, like the dump of a database. */
const dumpOf = (bytes: number) => {
  const entries = async function* () {
    yield { path: 'dump', content: Readable.from([Buffer.alloc(bytes, 1)]) };
  };
  return streamRoot('rows', entries());
};

describe('a chain whose archives each hold a stream', () => {
  let folder: string;
  beforeEach(() => {
    folder = freshFolder();
    writeFileSync(join(folder, 'page'), '0123456789');
  });

  test('is packed on and verified within the limits, however much its superseded streams add up to', async () => {
    const limits = { rawBytesMax: 100, entriesMax: 3 };
    const chain: PackedLink[] = [];
    for (let number = 0; number < 4; number += 1)
      chain.push(await packDirectory(folder, chain, [dumpOf(60)], { limits }));
    expect(await verifyChain(chain, key, { limits })).toHaveLength(4);
    const target = join(freshFolder(), 'target');
    await extract({ chain, key, roots: { files: target }, limits });
    expect(readdirSync(target)).toEqual(['page']);
  });

  test('is refused as an increment is packed, if its tree would then have more than the limits', async () => {
    const limits = { rawBytesMax: 100, entriesMax: 3 };
    const full = await packDirectory(folder, [], [dumpOf(60)], { limits });
    writeFileSync(join(folder, 'more'), Buffer.alloc(35));
    expect(await reasonOf(packDirectory(folder, [full], [dumpOf(60)], { limits }))).toBe('limit_exceeded');
    rmSync(join(folder, 'more'));
    for (const name of ['a', 'b']) writeFileSync(join(folder, name), '');
    expect(await reasonOf(packDirectory(folder, [full], [dumpOf(60)], { limits }))).toBe('limit_exceeded');
    rmSync(join(folder, 'b'));
    const increment = await packDirectory(folder, [full], [dumpOf(60)], { limits });
    expect(await verifyChain([full, increment], key, { limits })).toHaveLength(2);
  });

  test('is refused as an increment is packed, if what was changed and deleted is more than a reader takes', async () => {
    const limits = { entriesMax: 3 };
    writeFileSync(join(folder, 'other'), '');
    const full = await packDirectory(folder, [], [dumpOf(60)], { limits });
    for (const name of ['page', 'other']) rmSync(join(folder, name));
    writeFileSync(join(folder, 'new'), '');
    expect(await reasonOf(packDirectory(folder, [full], [dumpOf(60)], { limits }))).toBe('limit_exceeded');
    const again = await packDirectory(folder, [], [dumpOf(60)], { limits });
    expect(await verifyChain([again], key, { limits })).toHaveLength(1);
  });

  test('needs no segment of a superseded stream, but every other object', async () => {
    const chain: PackedLink[] = [];
    for (let number = 0; number < 3; number += 1) {
      writeFileSync(join(folder, `page-${number}`), `${number}`);
      chain.push(await packDirectory(folder, chain, [dumpOf(60)]));
    }
    const archives = await openChain(chain, key, completeLimits());
    for (const [at, archive] of archives.entries()) {
      const isSuperseded = at < archives.length - 1;
      const needed = new Set(['manifest']);
      for await (const { name } of piecesOf(archive, { isSuperseded })) needed.add(name);
      const { objects } = chain[at]?.source ?? link.source;
      const surplus = [...objects.keys()].filter((name) => !needed.has(name));
      expect(surplus).toEqual(isSuperseded ? ['segment-00000001'] : []);
      for (const name of surplus) objects.delete(name);
    }
    for (const contents of [false, true]) expect(await verifyChain(chain, key, { contents })).toHaveLength(3);
    for (const [at, { source }] of chain.entries()) {
      for (const name of source.objects.keys()) {
        const altered = chain.map((each, other) =>
          other === at ? { ...each, source: source.with(name, (bytes) => bytes.subarray(0, -1)) } : each,
        );
        expect(['tampered', 'truncated']).toContain(await reasonOf(verifyChain(altered, key)));
      }
    }
  });
});
